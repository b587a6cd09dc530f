// SPDX-License-Identifier: ISC
// The official Daytona SDK against the fake: what the SDK cannot tell from the real Daytona, a driver may rely on.
// Run by sdk_test.sh, which sets FAKE_URL and the SDK's environment.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, afterEach, test } from 'node:test'
import {
  Daytona, DaytonaAuthenticationError, DaytonaConflictError, DaytonaError, DaytonaGoneError,
  DaytonaNotFoundError, DaytonaRateLimitError, DaytonaTimeoutError, Image,
} from '@daytona/sdk'

const base = process.env.FAKE_URL
const daytona = new Daytona()
const decoder = new TextDecoder()

async function fake (method, path, body) {
  const answer = await fetch(`${base}/_fake/${path}`, { method, body: body && JSON.stringify(body) })
  assert.equal(answer.status, 200, `${method} ${path}`)
  return answer.json()
}

const knob = (path, action, extra = {}) => fake('POST', 'knobs', { match: { path }, action, ...extra })

/** Collects output and lets a test wait until it contains something; no wait of these tests is for a time. */
class Screen {
  seen = ''
  waiters = []
  add = data => {
    this.seen += typeof data === 'string' ? data : decoder.decode(data)
    this.waiters = this.waiters.filter(waiter => !(this.seen.includes(waiter.wanted) && (waiter.resolve(), true)))
  }

  until (wanted) {
    if (this.seen.includes(wanted)) return Promise.resolve()
    return new Promise(resolve => this.waiters.push({ wanted, resolve }))
  }
}

/** A test with a sandbox of its own. */
function withSandbox (name, body, params = {}) {
  test(name, { timeout: 60000 }, async () => {
    const sandbox = await daytona.create(params)
    await body(sandbox)
  })
}

/** Try again while the answer is a 500: an input before the command's fifo exists. */
async function untilAccepted (call) {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (error.statusCode !== 500) throw error
    }
  }
}

afterEach(() => fake('POST', 'reset'))
after(() => daytona[Symbol.asyncDispose]())

test('create, get, list, labels, stop, start, delete', { timeout: 60000 }, async () => {
  const sandbox = await daytona.create({ name: 'box1', labels: { team: 'x' }, envVars: { A: '1' }, autoStopInterval: 30 })
  assert.equal(sandbox.state, 'started')
  assert.deepEqual([sandbox.name, sandbox.target, sandbox.autoStopInterval], ['box1', 'us', 30])
  assert.equal((await daytona.get('box1')).id, sandbox.id)
  await daytona.create({ labels: { team: 'y' } })
  const found = []
  for await (const box of daytona.list({ labels: { team: 'x' }, limit: 1 })) found.push(box.id)
  assert.deepEqual(found, [sandbox.id])
  assert.deepEqual(await sandbox.setLabels({ team: 'z' }), { team: 'z' })
  await sandbox.setAutostopInterval(0)
  await sandbox.setAutoDeleteInterval(-1)
  await sandbox.refreshActivity()
  assert.equal(await sandbox.getWorkDir(), '/home/daytona')
  assert.equal(await sandbox.getUserHomeDir(), '/home/daytona')
  await sandbox.fs.uploadFile(Buffer.from('kept'), 'kept')
  await sandbox.stop()
  assert.equal(sandbox.state, 'stopped')
  await assert.rejects(sandbox.process.executeCommand('true'), /Is the Sandbox started\?/)
  await sandbox.start()
  assert.equal((await sandbox.fs.downloadFile('kept')).toString(), 'kept')
  await sandbox.delete(60, true)
  await assert.rejects(daytona.get(sandbox.id), DaytonaNotFoundError)
})

test('an image is built', { timeout: 60000 }, async () => {
  await fake('POST', 'config', { build_ms: 200 })
  const logs = []
  const sandbox = await daytona.create({
    image: Image.base('debian:12').runCommands('true'), resources: { cpu: 2, memory: 4, disk: 8 },
  }, { onSnapshotCreateLogs: line => logs.push(line) })
  assert.deepEqual([sandbox.state, sandbox.cpu, sandbox.memory, sandbox.disk], ['started', 2, 4, 8])
  assert.match(logs.join(''), /completed/)
  assert.match(sandbox.buildInfo.dockerfileContent, /^FROM debian:12\n/)
})

test('errors of the control plane have their classes', { timeout: 60000 }, async () => {
  await daytona.create({ name: 'taken' })
  await assert.rejects(daytona.create({ name: 'taken' }), DaytonaConflictError)
  await assert.rejects(daytona.create({ snapshot: 'none' }), /Snapshot none not found/)
  await assert.rejects(daytona.get('nope'), DaytonaNotFoundError)
  await assert.rejects(new Daytona({ apiKey: 'wrong', apiUrl: base + '/api' }).get('taken'), DaytonaAuthenticationError)
  await knob('^/api/sandbox$', { error: 'create_rate_limited' })
  await assert.rejects(daytona.create(), error =>
    error instanceof DaytonaRateLimitError && error.headers['retry-after-sandbox-create'] === '2')
  await fake('POST', 'config', { quota: { cpu: 1 } })
  await assert.rejects(daytona.create(), /Total CPU limit exceeded/)
  await fake('POST', 'config', { quota: {}, start_fails: 'no runner' })
  await assert.rejects(daytona.create(), /Sandbox failed to start: no runner/)
})

withSandbox('execute', async sandbox => {
  const done = await sandbox.process.executeCommand('echo $A $B; pwd; echo err >&2; exit 3', '/tmp', { B: '2' })
  assert.deepEqual([done.exitCode, done.result], [3, '1 2\n/tmp\nerr\n'])
  await assert.rejects(sandbox.process.executeCommand('sleep 100', undefined, undefined, 1), DaytonaTimeoutError)
  assert.equal((await sandbox.process.codeRun('print(40 + 2)')).result, '42\n')
}, { envVars: { A: '1' } })

withSandbox('a session keeps its state and splits its outputs', async sandbox => {
  const run = command => sandbox.process.executeSessionCommand('s', { command })
  await sandbox.process.createSession('s')
  await run('cd /tmp; x=5')
  const done = await run("pwd; echo $x; echo err >&2; printf 'no newline'")
  assert.deepEqual([done.stdout, done.stderr, done.exitCode], ['/tmp\n5\nno newline\n', 'err\n', 0])
  const logs = await sandbox.process.getSessionCommandLogs('s', done.cmdId)
  assert.deepEqual([logs.stdout, logs.stderr], [done.stdout, done.stderr])
  const session = await sandbox.process.getSession('s')
  assert.equal(session.commands.length, 2)
  assert.equal((await sandbox.process.listSessions()).length, 1)
  await sandbox.process.deleteSession('s')
  await assert.rejects(sandbox.process.getSession('s'), DaytonaNotFoundError)
})

withSandbox('a session command is followed and fed', async sandbox => {
  await sandbox.process.createSession('s')
  const { cmdId } = await sandbox.process.executeSessionCommand('s', {
    command: 'echo ready; read x; echo "got $x"; echo oops >&2; (exit 4)', runAsync: true, suppressInputEcho: true,
  })
  const out = new Screen()
  const err = new Screen()
  const following = sandbox.process.getSessionCommandLogs('s', cmdId, out.add, err.add)
  await out.until('ready')
  await untilAccepted(() => sandbox.process.sendSessionCommandInput('s', cmdId, 'hello'))
  await following
  assert.deepEqual([out.seen, err.seen], ['ready\ngot hello\n', 'oops\n'])
  assert.equal((await sandbox.process.getSessionCommand('s', cmdId)).exitCode, 4)
  await assert.rejects(sandbox.process.sendSessionCommandInput('s', cmdId, 'late'), DaytonaGoneError)
})

withSandbox('the SDK takes any end of a follow for success', async sandbox => {
  await sandbox.process.createSession('s')
  const { cmdId } = await sandbox.process.executeSessionCommand('s', { command: 'echo one; sleep 1000', runAsync: true })
  for (const code of [1000, 1006, 1011]) {
    await knob('/logs$', { after_events: 1, then: 'close', close_code: code })
    const out = new Screen()
    await sandbox.process.getSessionCommandLogs('s', cmdId, out.add, out.add)
    assert.equal(out.seen, 'one\n')
  }
})

withSandbox('a terminal is created and connected in one trip', async sandbox => {
  await fake('POST', 'config', { create_connect: true })
  const screen = new Screen()
  const pty = await sandbox.process.createPty({
    id: 'p', cols: 120, rows: 30, cwd: '/tmp', envs: { A: 'x y' }, onData: screen.add,
  })
  await pty.sendInput('echo "<$A $PWD $(stty size)>"\n')
  await screen.until('<x y /tmp 30 120>')
  assert.equal((await pty.resize(100, 40)).cols, 100)
  await pty.sendInput('echo "size $(stty size)"\n')
  await screen.until('size 40 100')
  assert.deepEqual((await sandbox.process.listPtySessions()).map(session => session.id), ['p'])
  await assert.rejects(sandbox.process.createPty({ id: 'p', onData () {} }))
  await pty.sendInput('exit 7\n')
  assert.equal((await pty.wait()).exitCode, 7)
  await assert.rejects(sandbox.process.getPtySessionInfo('p'), DaytonaNotFoundError)
})

/** A terminal made by the older call, which the SDK does not use any more. */
async function createTerminal (sandbox, id) {
  const answer = await fetch(`${base}/toolbox/${sandbox.id}/process/pty`, {
    method: 'POST', body: JSON.stringify({ id }), headers: { Authorization: `Bearer ${process.env.DAYTONA_API_KEY}` },
  })
  assert.equal(answer.status, 201)
}

withSandbox('a terminal outlives its connection, then is killed', async sandbox => {
  await fake('POST', 'config', { create_connect: true })
  await createTerminal(sandbox, 'p')
  const first = await sandbox.process.connectPty('p', { onData () {} })
  await first.disconnect()
  const screen = new Screen()
  const pty = await sandbox.process.connectPty('p', { onData: screen.add })
  await pty.sendInput('echo al""ive\n')
  await screen.until('alive')
  await pty.kill()
  assert.equal((await pty.wait()).exitCode, 137)
  await assert.rejects(sandbox.process.connectPty('p', { onData () {} }), /PTY session p not found/)
})

withSandbox('a daemon 0.190 is too old for the terminals of this SDK', async sandbox => {
  const refused = error => error instanceof DaytonaError
  await assert.rejects(sandbox.process.createPty({ id: 'p', onData () {} }), refused)
  await createTerminal(sandbox, 'p')
  await assert.rejects(sandbox.process.connectPty('p', { onData () {} }), refused)
})

withSandbox('files', async sandbox => {
  const data = randomBytes(3 << 20)
  await sandbox.fs.uploadFile(data, 'new dir/ä b.bin')
  assert.ok(data.equals(await sandbox.fs.downloadFile('new dir/ä b.bin')))
  const chunks = []
  for await (const chunk of await sandbox.fs.downloadFileStream('new dir/ä b.bin')) chunks.push(chunk)
  assert.ok(data.equals(Buffer.concat(chunks)))
  await sandbox.fs.uploadFiles([{ source: Buffer.from('one'), destination: '/tmp/1' },
    { source: Buffer.from('two'), destination: '/tmp/2' }])
  const files = await sandbox.fs.downloadFiles([{ source: '/tmp/1' }, { source: '/nope' }, { source: '/tmp/2' }])
  assert.deepEqual(files.map(file => file.result?.toString()), ['one', undefined, 'two'])
  assert.match(files[1].error, /file not found/)
  await assert.rejects(sandbox.fs.downloadFile('/nope'), DaytonaNotFoundError)
  await sandbox.fs.createFolder('/tmp/d', '700')
  await sandbox.fs.setFilePermissions('/tmp/1', { mode: '640' })
  await sandbox.fs.moveFiles('/tmp/1', '/tmp/d/one')
  await assert.rejects(sandbox.fs.moveFiles('/tmp/2', '/tmp/d/one'), DaytonaConflictError)
  const info = await sandbox.fs.getFileDetails('/tmp/d/one')
  assert.deepEqual([info.name, info.size, info.mode, info.permissions], ['one', 3, '-rw-r-----', '0640'])
  assert.deepEqual((await sandbox.fs.listFiles('/tmp')).map(file => file.name), ['2', 'd'])
  assert.deepEqual((await sandbox.fs.searchFiles('/tmp', 'o*')).files, ['/tmp/d/one'])
  assert.deepEqual(await sandbox.fs.findFiles('/tmp', 'tw'), [{ file: '/tmp/2', line: 1, content: 'two' }])
  await sandbox.fs.replaceInFiles(['/tmp/2'], 'two', 'three')
  await sandbox.fs.deleteFile('/tmp/d', true)
  assert.deepEqual((await sandbox.fs.listFiles('/tmp')).map(file => file.name), ['2'])
  await assert.rejects(sandbox.fs.getFileDetails('/tmp/d'), DaytonaNotFoundError)
})
