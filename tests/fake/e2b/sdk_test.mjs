// SPDX-License-Identifier: ISC
// The official E2B SDK against the fake: what the SDK cannot tell from the real E2B, a driver may rely on.
// Run by sdk_test.sh, which sets FAKE_URL and the SDK's environment.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import {
  AuthenticationError, CommandExitError, FileNotFoundError, InvalidArgumentError, NotEnoughSpaceError, NotFoundError,
  RateLimitError, Sandbox, SandboxError, SandboxNotFoundError, TimeoutError,
} from 'e2b'

const base = process.env.FAKE_URL
const text = new TextDecoder()

async function fake (method, path, body) {
  const answer = await fetch(`${base}/_fake/${path}`, { method, body: body && JSON.stringify(body) })
  assert.equal(answer.status, 200, `${method} ${path}`)
  return answer.json()
}

const knob = (match, action, extra = {}) => fake('POST', 'knobs', { match, action, ...extra })
const requests = async (query = '') => (await fake('GET', `requests?${query}`)).requests

/** A promise with its resolve function; every wait of these tests is for an event, none for a time. */
function signal () {
  let resolve
  const promise = new Promise(r => { resolve = r })
  return { promise, resolve }
}

/** Collects text and lets a test wait until it contains something. */
class Screen {
  seen = ''
  waiters = []
  add = data => {
    this.seen += typeof data === 'string' ? data : text.decode(data)
    this.waiters = this.waiters.filter(w => !(this.seen.includes(w.wanted) && (w.resolve(), true)))
  }

  until (wanted) {
    if (this.seen.includes(wanted)) return Promise.resolve()
    const { promise, resolve } = signal()
    this.waiters.push({ wanted, resolve })
    return promise
  }
}

/** A test with a sandbox of its own. */
function withSandbox (name, body, opts = {}) {
  test(name, { timeout: 60000 }, async () => {
    const sbx = await Sandbox.create('base', { timeoutMs: 300000, ...opts })
    try {
      await body(sbx)
    } finally {
      await sbx.kill()
    }
  })
}

after(() => fake('POST', 'reset'))

// -- control plane ----------------------------------------------------------------------------------------------------

test('create, info, list by metadata, kill', async () => {
  const metadata = { 'k e': 'v&1', owner: 'täst=', 'rws-managed': 'true' }
  const sbx = await Sandbox.create('base', { timeoutMs: 120500, metadata, envs: { A: '1' } })
  const other = await Sandbox.create('base', { metadata: { owner: 'other' } })
  assert.match(sbx.sandboxId, /^i[a-z0-9]+$/)
  const info = await sbx.getInfo()
  assert.equal(info.state, 'running')
  assert.deepEqual(info.metadata, metadata)
  assert.equal(Math.round((info.endAt - info.startedAt) / 1000), 121)
  const found = await Sandbox.list({ query: { metadata } }).nextItems()
  assert.deepEqual(found.map(s => s.sandboxId), [sbx.sandboxId])
  assert.equal(await sbx.isRunning(), true)
  assert.equal(await sbx.kill(), true)
  assert.equal(await sbx.isRunning(), false)
  assert.equal(await sbx.kill(), false)
  assert.equal(await Sandbox.kill(other.sandboxId), true)
  await assert.rejects(Sandbox.getInfo(sbx.sandboxId), NotFoundError)
})

test('list goes through pages, in both orders', async () => {
  const boxes = []
  for (let i = 0; i < 5; i++) boxes.push(await Sandbox.create({ metadata: { group: 'pages' } }))
  const ids = boxes.map(s => s.sandboxId)
  for (const order of ['desc', 'asc']) {
    const pages = Sandbox.list({ query: { metadata: { group: 'pages' } }, limit: 2, order })
    const seen = []
    while (pages.hasNext) seen.push(...await pages.nextItems())
    assert.deepEqual(seen.map(s => s.sandboxId), order === 'asc' ? ids : [...ids].reverse())
  }
  await Promise.all(boxes.map(s => s.kill()))
})

withSandbox('setTimeout sets the end, earlier too', async sbx => {
  await sbx.setTimeout(3600_000)
  const long = await sbx.getInfo()
  await sbx.setTimeout(60_000)
  const short = await sbx.getInfo()
  assert.ok(long.endAt - Date.now() > 3_590_000)
  assert.ok(short.endAt - Date.now() < 61_000)
  await Sandbox.connect(sbx.sandboxId, { timeoutMs: 30_000 })
  assert.deepEqual((await sbx.getInfo()).endAt, short.endAt, 'connect never shortens')
})

withSandbox('pause keeps processes, connect brings them back', async sbx => {
  const screen = new Screen()
  const command = await sbx.commands.run('while read line; do echo "got $line"; done',
    { background: true, stdin: true, timeoutMs: 0, onStdout: screen.add })
  await command.sendStdin('one\n')
  await screen.until('got one')
  const broken = command.wait().catch(error => error)
  assert.equal(await sbx.pause(), true)
  assert.ok(await broken instanceof Error, 'a stream does not outlive the pause')
  assert.equal(await sbx.pause(), false, 'already paused')
  assert.equal((await sbx.getInfo()).state, 'paused')
  assert.equal(await sbx.isRunning(), false)
  await assert.rejects(sbx.setTimeout(1000), SandboxNotFoundError)
  const again = await Sandbox.connect(sbx.sandboxId)
  assert.equal(await again.isRunning(), true)
  const second = new Screen()
  const handle = await again.commands.connect(command.pid, { onStdout: second.add })
  await handle.sendStdin('two\n')
  await second.until('got two')
  await handle.closeStdin()
  assert.equal((await handle.wait()).exitCode, 0)
})

withSandbox('a paused sandbox that may resume does so on a request', async sbx => {
  await sbx.files.write('kept', 'x')
  await sbx.pause()
  assert.equal(await sbx.files.read('kept'), 'x')
}, { lifecycle: { onTimeout: 'pause', autoResume: true } })

test('the end of the TTL', async () => {
  const sbx = await Sandbox.create({ timeoutMs: 300000 })
  const running = sbx.commands.run('sleep 1000', { timeoutMs: 0 })
  const failure = running.catch(error => error)
  await fake('POST', `sandboxes/${sbx.sandboxId}/expire`)
  const error = await failure
  assert.ok(error instanceof SandboxError || error instanceof NotFoundError, String(error))
  await assert.rejects(sbx.commands.run('true'), SandboxNotFoundError)
  await assert.rejects(sbx.files.read('/etc/passwd'), TimeoutError)
  await assert.rejects(sbx.files.getInfo('/'), TimeoutError)
})

withSandbox('snapshot and create from it', async sbx => {
  await sbx.files.write('/home/user/f', 'from before')
  const { snapshotId } = await sbx.createSnapshot()
  const copy = await Sandbox.create(snapshotId)
  assert.equal(await copy.files.read('f'), 'from before')
  await copy.kill()
  assert.equal(await Sandbox.deleteSnapshot(snapshotId), true)
})

test('errors of the control plane', async () => {
  await assert.rejects(Sandbox.create({ apiKey: 'wrong' }), AuthenticationError)
  await assert.rejects(Sandbox.create('no-such-template'), /404: template 'no-such-template' not found/)
  await assert.rejects(Sandbox.create({ timeoutMs: 1000 * 3600_000 }), SandboxError)
  await knob({ method: 'POST', path: '^/v2/sandboxes$' }, { status: 429, body: { code: 429, message: 'full' } })
  await assert.rejects(Sandbox.create(), RateLimitError)
  await knob({ method: 'POST', path: '^/v2/sandboxes$' },
    { status: 429, headers: { 'Retry-After': '1' }, body: { code: 429, message: 'Rate limit exceeded' } })
  const before = (await requests('method=POST&path=^/v2/sandboxes$')).length
  const sbx = await Sandbox.create()
  assert.equal((await requests('method=POST&path=^/v2/sandboxes$')).length, before + 2, 'retried after Retry-After')
  await sbx.kill()
})

// -- commands ---------------------------------------------------------------------------------------------------------

withSandbox('a command: output, error output, exit code', async sbx => {
  const result = await sbx.commands.run('echo out; echo err >&2')
  assert.deepEqual([result.exitCode, result.stdout, result.stderr], [0, 'out\n', 'err\n'])
  await assert.rejects(sbx.commands.run('echo no >&2; exit 3'), error =>
    error instanceof CommandExitError && error.exitCode === 3 && error.stderr === 'no\n')
  await assert.rejects(sbx.commands.run('/no/such/thing'), error => error.exitCode === 127)
  const big = await sbx.commands.run('head -c 8000000 /dev/zero | tr "\\0" x')
  assert.equal(big.stdout.length, 8000000)
})

withSandbox('user, directory and environment', async sbx => {
  const seen = async (command, opts) => (await sbx.commands.run(command, opts)).stdout.trim()
  assert.equal(await seen('whoami; pwd; echo $HOME'), 'user\n/home/user\n/home/user')
  assert.equal(await seen('whoami; pwd; id -u', { user: 'root' }), 'root\n/root\n0')
  assert.equal(await seen('pwd', { cwd: '/tmp' }), '/tmp')
  assert.equal(await seen('echo $A-$B-$E2B_SANDBOX-$E2B_SANDBOX_ID', { envs: { B: '2' } }), `1-2-true-${sbx.sandboxId}`)
  await assert.rejects(sbx.commands.run('true', { cwd: '/nowhere' }), error =>
    error instanceof InvalidArgumentError && error.message.includes("cwd '/nowhere' does not exist"))
  await assert.rejects(sbx.commands.run('true', { user: 'nobody-such' }), AuthenticationError)
}, { envs: { A: '1' } })

withSandbox('stdin, its end, and its absence', async sbx => {
  const cat = await sbx.commands.run('cat', { background: true, stdin: true })
  await cat.sendStdin('hello ')
  await cat.sendStdin('x'.repeat(200000))
  await cat.closeStdin()
  assert.equal((await cat.wait()).stdout, 'hello ' + 'x'.repeat(200000))
  assert.equal((await sbx.commands.run('cat')).stdout, '', 'no stdin is /dev/null')
  await assert.rejects(sbx.commands.sendStdin(99999, 'x'), NotFoundError)
})

withSandbox('background, list, connect, kill', async sbx => {
  const handle = await sbx.commands.run('echo started; sleep 1000', { background: true, timeoutMs: 0 })
  assert.deepEqual((await sbx.commands.list()).map(p => p.pid), [handle.pid])
  await handle.disconnect()
  const again = await sbx.commands.connect(handle.pid)
  assert.equal(await again.kill(), true)
  await assert.rejects(again.wait(), error => error instanceof CommandExitError && error.exitCode === -1 &&
    error.error === 'signal: killed')
  assert.equal(await sbx.commands.kill(handle.pid), false)
  assert.deepEqual(await sbx.commands.list(), [])
})

withSandbox('a late connect gets the exit code only', async sbx => {
  const handle = await sbx.commands.run('echo lost; exit 7', { background: true })
  await assert.rejects(handle.wait(), error => error.exitCode === 7)
  const late = await sbx.commands.connect(handle.pid)
  await assert.rejects(late.wait(), error => error.exitCode === 7 && error.stdout === '')
  await assert.rejects(sbx.commands.connect(424242), NotFoundError)
})

withSandbox('a command past its timeout is killed', async sbx => {
  const running = sbx.commands.run('echo $$ > pid; exec sleep 1000', { timeoutMs: 1000 })
  await assert.rejects(running, TimeoutError)
  // The daemon kills it once it has seen that the client is gone.
  const state = await sbx.commands.run('while kill -0 $(cat pid) 2>/dev/null; do sleep 0.02; done; echo gone')
  assert.equal(state.stdout, 'gone\n')
})

withSandbox('terminal: input, size, resize, end', async sbx => {
  const screen = new Screen()
  const pty = await sbx.pty.create({ cols: 90, rows: 25, onData: screen.add })
  const type = line => sbx.pty.sendInput(pty.pid, new TextEncoder().encode(line))
  await type('stty size; echo TERM=$TERM; tty\n')
  await screen.until('25 90')
  await screen.until('TERM=xterm-256color')
  await screen.until('/dev/pts/')
  await sbx.pty.resize(pty.pid, { cols: 120, rows: 40 })
  await type('stty size\n')
  await screen.until('40 120')
  await type('exit 4\n')
  await assert.rejects(pty.wait(), error => error.exitCode === 4)
})

withSandbox('terminal: kill', async sbx => {
  const pty = await sbx.pty.create({ cols: 80, rows: 24, onData: () => {} })
  assert.equal(await sbx.pty.kill(pty.pid), true)
  await assert.rejects(pty.wait(), error => error.error === 'signal: killed')
})

// -- files ------------------------------------------------------------------------------------------------------------

const everyByte = () => Uint8Array.from({ length: 70000 }, (_, i) => (i * 7) % 256)

withSandbox('write and read, text and binary, both upload forms', async sbx => {
  await sbx.files.write('a/b/text', 'grüße')
  assert.equal(await sbx.files.read('/home/user/a/b/text'), 'grüße')
  for (const useOctetStream of [false, true]) {
    const info = await sbx.files.write('/tmp/bin', new Blob([everyByte()]), { useOctetStream })
    assert.equal(info.path, '/tmp/bin')
    assert.deepEqual(Buffer.from(await sbx.files.read('/tmp/bin', { format: 'bytes' })), Buffer.from(everyByte()))
  }
  await sbx.files.write('/tmp/zipped', 'z'.repeat(100000), { gzip: true, useOctetStream: true })
  assert.equal((await sbx.files.read('/tmp/zipped', { gzip: true })).length, 100000)
  const both = await sbx.files.write([{ path: '/tmp/1', data: 'one' }, { path: '/tmp/2', data: 'two' }])
  assert.deepEqual(both.map(f => f.path).sort(), ['/tmp/1', '/tmp/2'])
  assert.equal(await sbx.files.read('/tmp/2'), 'two')
})

withSandbox('list, info, rename, remove, makeDir, exists', async sbx => {
  await sbx.files.write('/home/user/d/f', '12345')
  await sbx.commands.run('ln -s f d/l; chmod 640 d/f')
  assert.equal(await sbx.files.makeDir('d/sub'), true)
  assert.equal(await sbx.files.makeDir('d/sub'), false)
  const names = (await sbx.files.list('d')).map(e => [e.name, e.type])
  assert.deepEqual(names, [['f', 'file'], ['l', 'file'], ['sub', 'dir']])
  const info = await sbx.files.getInfo('d/f')
  assert.deepEqual([info.size, info.mode, info.permissions, info.owner, info.path],
    [5, 0o640, '-rw-r-----', 'user', '/home/user/d/f'])
  assert.equal((await sbx.files.getInfo('d/l')).symlinkTarget, '/home/user/d/f')
  assert.equal((await sbx.files.rename('d/f', '/tmp/new/f')).path, '/tmp/new/f')
  assert.equal(await sbx.files.exists('d/f'), false)
  assert.equal(await sbx.files.exists('/tmp/new/f'), true)
  await sbx.files.remove('/tmp/new')
  assert.equal(await sbx.files.exists('/tmp/new'), false)
  await assert.rejects(sbx.files.read('/none'), FileNotFoundError)
  await assert.rejects(sbx.files.list('/none'), FileNotFoundError)
  await assert.rejects(sbx.files.rename('/none', '/tmp/x'), FileNotFoundError)
  await assert.rejects(sbx.files.read('d'), InvalidArgumentError)
})

withSandbox('a full disk', async sbx => {
  await fake('POST', 'config', { disk_free: 10 })
  await assert.rejects(sbx.files.write('big', 'x'.repeat(11)), NotEnoughSpaceError)
  await fake('POST', 'config', { disk_free: null })
  assert.equal(await sbx.files.read('big'), 'x'.repeat(10), 'what fitted stays')
})

withSandbox('signed links need no token', async sbx => {
  const direct = async link => {
    const url = new URL(link)
    return [`${base}${url.pathname}${url.search}`, { 'E2b-Sandbox-Id': sbx.sandboxId, 'E2b-Sandbox-Port': '49983' }]
  }
  const [upload, headers] = await direct(await sbx.uploadUrl('/tmp/signed', { useSignatureExpiration: 100 }))
  const form = new FormData()
  form.append('file', new Blob(['signed']))
  assert.equal((await fetch(upload, { method: 'POST', body: form, headers })).status, 200)
  const [download] = await direct(await sbx.downloadUrl('/tmp/signed'))
  assert.equal(await (await fetch(download, { headers })).text(), 'signed')
  const other = await fetch(download.replace('signed', 'other'), { headers })
  assert.deepEqual([other.status, await other.json()], [401, { code: 401, message: 'invalid signature' }])
})

withSandbox('watching a directory', async sbx => {
  const seen = new Screen()
  const handle = await sbx.files.watchDir('/home/user', event => seen.add(`${event.type}:${event.name};`),
    { recursive: true })
  await sbx.commands.run('mkdir sub')
  await seen.until('create:sub;')
  await sbx.files.write('sub/f', 'x')
  await sbx.files.write('top', 'x')
  await seen.until('write:top;')
  await sbx.files.remove('top')
  await seen.until('remove:top;')
  await handle.stop()
})

// -- faults, as the SDK sees them -------------------------------------------------------------------------------------

withSandbox('verdicts of the SDK on faults', async sbx => {
  const start = { path: 'Process/Start', sandbox: sbx.sandboxId }
  const failing = async (action, check) => {
    await knob(start, action)
    await assert.rejects(sbx.commands.run('echo x'), check)
  }
  await failing({ status: 502, body: { sandboxId: sbx.sandboxId, message: 'The sandbox was not found', code: 502 } },
    SandboxNotFoundError)
  await failing({ status: 401, body: { code: 401, message: 'unauthorized' } }, AuthenticationError)
  await failing({ status: 409, body: { code: 409, message: 'still transitioning' } }, /409/)
  await failing({ end_stream: 'none' }, /EndStream/)
  await failing({ no_end_event: true }, /without a result/)
  await failing({ after_events: 1 }, Error)
  await failing({ kill_sandbox: true, after_events: 1 }, Error)
  assert.equal(await sbx.isRunning(), false)
})

test('old daemons', async () => {
  await fake('POST', 'config', { envd_version: '0.5.1' })
  const sbx = await Sandbox.create()
  await fake('POST', 'config', { envd_version: '0.6.13' })
  assert.equal(sbx.commands.supportsStdinClose, false)
  const cat = await sbx.commands.run('cat', { background: true, stdin: true })
  await assert.rejects(cat.closeStdin(), SandboxError)
  await cat.kill()
  await sbx.files.write('f', 'multipart', { useOctetStream: true })
  assert.equal(await sbx.files.read('f'), 'multipart')
  await sbx.kill()
})
