// SPDX-License-Identifier: ISC
// The official Vercel Sandbox SDK against the fake: what the SDK cannot tell from the real Vercel, a driver may rely
// on. Run by sdk_test.sh; redirect.mjs brings the SDK's requests to the fake.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Writable } from 'node:stream'
import { afterEach, test } from 'node:test'
import { APIError, Sandbox, Snapshot, StreamError } from '@vercel/sandbox'

const base = process.env.FAKE_URL
const credentials = { token: 'tok_test', teamId: 'team_test', projectId: 'prj_test' }

async function fake (method, path, body) {
  const answer = await fetch(`${base}/_fake/${path}`, { method, body: body && JSON.stringify(body) })
  assert.equal(answer.status, 200, `${method} ${path}`)
  return answer.json()
}

const knob = (path, action, extra = {}) => fake('POST', 'knobs', { match: { path }, action, ...extra })
const requests = async path => (await fake('GET', `requests?path=${encodeURIComponent(path)}`)).requests
const create = (params = {}) => Sandbox.create({ ...credentials, ...params })
const shell = (sandbox, script, params = {}) => sandbox.runCommand({ cmd: 'sh', args: ['-c', script], ...params })

/** What an error of the API says, for assert.rejects. */
const refusal = (status, code) => error =>
  error instanceof APIError && error.response.status === status && error.json.error.code === code

/** Collects what is written to it. */
class Sink extends Writable {
  seen = ''
  _write (chunk, encoding, done) {
    this.seen += chunk
    done()
  }
}

/** A test with a sandbox of its own. */
function withSandbox (name, body, params) {
  test(name, { timeout: 60000 }, async () => body(await create(params)))
}

afterEach(() => fake('POST', 'reset'))

test('a sandbox is created with everything that can be said, and found again', { timeout: 60000 }, async () => {
  const sandbox = await create({
    name: 'my-box', image: 'vercel/sandbox/node:24', ports: [3000, 8080], timeout: 600000, resources: { vcpus: 4 },
    persistent: false, networkPolicy: 'deny-all', env: { A: '1' }, tags: { team: 'x' }, snapshotExpiration: 0,
    keepLastSnapshots: { count: 1 }, region: 'iad1', __interactive: true,
  })
  assert.equal(sandbox.name, 'my-box')
  assert.equal(sandbox.status, 'running')
  assert.equal(sandbox.timeout, 600000)
  assert.deepEqual([sandbox.vcpus, sandbox.memory], [4, 8192])
  assert.equal(sandbox.persistent, false)
  assert.equal(sandbox.networkPolicy, 'deny-all')
  assert.deepEqual(sandbox.tags, { team: 'x' })
  assert.match(sandbox.domain(3000), /^https:\/\/[a-z0-9-]+\.vercel\.run$/)
  assert.notEqual(sandbox.domain(3000), sandbox.domain(8080))
  assert.equal(sandbox.currentSession().cwd, '/vercel')
  assert.ok(Math.abs(sandbox.createdAt - Date.now()) < 60000)
  assert.ok(sandbox.interactivePort > 0)
  const again = await Sandbox.get({ ...credentials, name: 'my-box' })
  assert.equal(again.currentSession().sessionId, sandbox.currentSession().sessionId)
  assert.match(sandbox.currentSession().sessionId, /^sbx_/)
  await assert.rejects(create({ name: 'my-box' }), refusal(400, 'bad_request'))
  await assert.rejects(Sandbox.get({ ...credentials, name: 'nobody' }), refusal(404, 'not_found'))
})

test('a runtime of old goes by the second version, with another user', { timeout: 60000 }, async () => {
  const sandbox = await create({ runtime: 'node24' })
  assert.equal((await requests('/v2/sandboxes$')).length, 1)
  assert.equal(sandbox.currentSession().cwd, '/vercel/sandbox')
  assert.equal(await (await shell(sandbox, 'id -un; pwd')).stdout(), 'vercel-sandbox\n/vercel/sandbox\n')
  await assert.rejects(create({ runtime: 'node20' }), refusal(400, 'bad_request'))
})

test('lists come in pages that the SDK follows', { timeout: 60000 }, async () => {
  for (const name of ['b-1', 'b-2', 'c-1']) await create({ name, tags: { of: name[0] } })
  const names = async params => {
    const found = []
    for await (const sandbox of await Sandbox.list({ ...credentials, limit: 1, ...params })) found.push(sandbox.name)
    return found
  }
  assert.deepEqual(await names(), ['c-1', 'b-2', 'b-1'])
  assert.deepEqual(await names({ sortBy: 'name', sortOrder: 'asc', namePrefix: 'b' }), ['b-1', 'b-2'])
  assert.deepEqual(await names({ tags: { of: 'c' } }), ['c-1'])
  assert.deepEqual(await names({ projectId: 'prj_other' }), [])
})

withSandbox('a command is waited for, with its output, its status and its place', async sandbox => {
  const result = await shell(sandbox, 'echo out; echo err >&2; pwd; echo "$A $B"; exit 7', {
    cwd: '/tmp', env: { B: '2' },
  })
  assert.equal(result.exitCode, 7)
  assert.equal(await result.stdout(), 'out\n/tmp\n1 2\n')
  assert.equal(await result.stderr(), 'err\n')
  assert.ok(result.durationMs >= 0)
  const [stdout, stderr] = [new Sink(), new Sink()]
  await shell(sandbox, 'echo a; echo b >&2', { stdout, stderr })
  assert.deepEqual([stdout.seen, stderr.seen], ['a\n', 'b\n'])
}, { env: { A: '1' } })

withSandbox('a command can be root', async sandbox => {
  const result = await shell(sandbox, 'id -u; echo $USER $HOME $SUDO_USER $X', { sudo: true, env: { X: 'kept' } })
  assert.equal(await result.stdout(), '0\nroot /root ubuntu kept\n')
})

withSandbox('a program that does not exist is refused, a script that finds none is not', async sandbox => {
  await assert.rejects(sandbox.runCommand('no-such-program'), refusal(400, 'executable_not_found'))
  assert.equal((await shell(sandbox, 'no-such-program')).exitCode, 127)
})

withSandbox('a detached command is followed, found again and waited for', async sandbox => {
  await shell(sandbox, 'mkfifo fifo')
  const command = await shell(sandbox, 'echo one; read line < fifo; echo "$line"', { detached: true })
  assert.equal(command.exitCode, null)
  const seen = []
  for await (const line of command.logs()) {
    seen.push(line.data)
    if (seen.join('') === 'one\n') await shell(sandbox, 'echo two > fifo', { detached: true })
  }
  assert.equal(seen.join(''), 'one\ntwo\n')
  const found = await sandbox.getCommand(command.cmdId)
  const finished = await found.wait()
  assert.equal(finished.exitCode, 0)
  assert.equal(await finished.stdout(), 'one\ntwo\n', 'the log begins at its first byte again')
})

withSandbox('signals end commands with 128 and their number', async sandbox => {
  for (const [signal, code] of [['SIGTERM', 143], ['SIGINT', 130], ['SIGKILL', 137], [10, 138]]) {
    const command = await sandbox.runCommand({ cmd: 'sleep', args: ['1000'], detached: true })
    await command.kill(signal)
    assert.equal((await command.wait()).exitCode, code)
  }
  const late = await sandbox.runCommand({ cmd: 'sleep', args: ['1000'], timeoutMs: 100 })
  assert.equal(late.exitCode, 137)
})

withSandbox('what is no UTF-8 is lost', async sandbox => {
  assert.equal(await (await shell(sandbox, "printf 'caf\\303\\251 \\377 \\000end'")).stdout(), 'café \ufffd \0end')
})

withSandbox('files are written with their modes and read back byte for byte', async sandbox => {
  const data = randomBytes(3 << 20)
  await sandbox.writeFiles([
    { path: 'big', content: data }, { path: 'deep/er/tool', content: '#!/bin/sh\necho ran\n', mode: 0o755 },
    { path: '/tmp/' + 'long'.repeat(20) + '/' + 'name'.repeat(25), content: 'x' },
  ])
  assert.ok((await sandbox.readFileToBuffer({ path: 'big' })).equals(data))
  assert.equal((await sandbox.readFileToBuffer({ path: 'tool', cwd: '/vercel/deep/er' })).toString(),
    '#!/bin/sh\necho ran\n')
  assert.equal(await (await sandbox.runCommand('deep/er/tool')).stdout(), 'ran\n')
  const owners = await (await shell(sandbox, 'stat -c "%U %a" big deep deep/er/tool')).stdout()
  assert.equal(owners, 'ubuntu 644\nubuntu 755\nubuntu 755\n')
  assert.equal(await sandbox.readFileToBuffer({ path: 'missing' }), null)
  await assert.rejects(sandbox.readFileToBuffer({ path: '/tmp' }), APIError)
  assert.ok((await sandbox.downloadFile({ path: 'big' }, { path: `${process.env.WORK}/big` })).endsWith('/big'))
  assert.ok((await readFile(`${process.env.WORK}/big`)).equals(data))
})

withSandbox("directories and the SDK's own file tools work", async sandbox => {
  await sandbox.mkDir('sub')
  await sandbox.fs.writeFile('sub/f', 'text')
  assert.equal(await sandbox.fs.readFile('sub/f', 'utf8'), 'text')
  assert.deepEqual(await sandbox.fs.readdir('sub'), ['f'])
  assert.equal((await sandbox.fs.stat('sub/f')).size, 4)
  await sandbox.fs.rename('sub/f', 'sub/g')
  await sandbox.fs.rm('sub', { recursive: true })
  await assert.rejects(sandbox.fs.stat('sub/g'), { code: 'ENOENT' })
})

withSandbox('a persistent sandbox stops, comes back as another session and keeps its files', async sandbox => {
  const first = sandbox.currentSession().sessionId
  await sandbox.writeFiles([{ path: 'kept', content: 'yes' }])
  const stopped = await sandbox.stop()
  assert.equal(stopped.status, 'stopped')
  assert.match(stopped.snapshot.id, /^snap_/)
  assert.equal(sandbox.currentSnapshotId, stopped.snapshot.id)
  const asleep = await Sandbox.get({ ...credentials, name: sandbox.name, resume: false })
  assert.equal(asleep.status, 'stopped')
  assert.equal((await asleep.readFileToBuffer({ path: 'kept' })).toString(), 'yes', 'the SDK resumes it for that')
  assert.notEqual(asleep.currentSession().sessionId, first)
  assert.equal(asleep.currentSession().sourceSnapshotId, stopped.snapshot.id)
  const sessions = await sandbox.listSessions()
  assert.deepEqual(sessions.sessions.map(session => session.status), ['running', 'stopped'])
})

test('a sandbox that keeps nothing cannot come back', { timeout: 60000 }, async () => {
  const sandbox = await create({ name: 'brief', persistent: false })
  assert.equal((await sandbox.stop()).snapshot, undefined)
  await assert.rejects(shell(sandbox, 'true'), refusal(410, 'snapshot_not_found'))
  const fresh = await Sandbox.getOrCreate({ ...credentials, name: 'brief', persistent: false, resume: true })
  assert.equal((await shell(fresh, 'true')).exitCode, 0)
})

withSandbox('a snapshot ends the session and is where others begin', async sandbox => {
  await sandbox.writeFiles([{ path: 'base', content: 'here' }])
  const session = sandbox.currentSession().sessionId
  const snapshot = await sandbox.snapshot({ expiration: 0 })
  assert.equal(snapshot.status, 'created')
  assert.equal(snapshot.sourceSessionId, session)
  assert.equal(snapshot.expiresAt, undefined)
  assert.ok(snapshot.sizeBytes > 0)
  const other = await create({ source: { type: 'snapshot', snapshotId: snapshot.snapshotId } })
  assert.equal((await other.readFileToBuffer({ path: 'base' })).toString(), 'here')
  const fork = await Sandbox.fork({ ...credentials, sourceSandbox: sandbox.name, name: 'forked' })
  assert.equal((await fork.readFileToBuffer({ path: 'base' })).toString(), 'here')
  const listed = []
  for await (const one of await sandbox.listSnapshots()) listed.push(one.id)
  assert.deepEqual(listed, [snapshot.snapshotId])
  const found = await Snapshot.get({ ...credentials, snapshotId: snapshot.snapshotId })
  await found.delete()
  assert.equal(found.status, 'deleted')
  await assert.rejects(create({ source: { type: 'snapshot', snapshotId: snapshot.snapshotId } }),
    refusal(410, 'snapshot_not_found'))
})

withSandbox('the lifetime grows to what the plan allows, and ends', async sandbox => {
  await fake('POST', 'config', { max_timeout_ms: 900000 })
  await sandbox.extendTimeout(300000)
  assert.equal(sandbox.currentSession().timeout, 600000)
  await assert.rejects(sandbox.extendTimeout(600000), refusal(400, 'sandbox_timeout_invalid'))
  await assert.rejects(create({ timeout: 1000000 }), refusal(400, 'sandbox_timeout_invalid'))
  await fake('POST', `sandboxes/${sandbox.name}/expire`)
  const session = sandbox.currentSession().sessionId
  assert.equal((await shell(sandbox, 'true')).exitCode, 0, 'the SDK wakes it up')
  assert.notEqual(sandbox.currentSession().sessionId, session)
}, { timeout: 300000 })

withSandbox('options can be changed', async sandbox => {
  await sandbox.update({
    resources: { vcpus: 4 }, timeout: 900000, networkPolicy: { allow: ['github.com'] }, tags: { a: 'b' },
    ports: [3000, 4000],
  })
  assert.deepEqual([sandbox.vcpus, sandbox.timeout], [4, 900000])
  assert.deepEqual(sandbox.tags, { a: 'b' })
  assert.deepEqual(sandbox.networkPolicy, { allow: ['github.com'], subnets: { allow: [], deny: [] } })
  assert.equal(sandbox.currentSession().timeout, 900000)
  assert.ok(sandbox.domain(4000))
})

test('a deleted sandbox is gone, its snapshots only when asked for', { timeout: 60000 }, async () => {
  for (const deleteOrphanSnapshots of [false, true]) {
    const sandbox = await create({ name: 'doomed' })
    const { snapshot } = await sandbox.stop()
    await sandbox.delete({ deleteOrphanSnapshots })
    await assert.rejects(Sandbox.get({ ...credentials, name: 'doomed' }), refusal(404, 'not_found'))
    const left = await Snapshot.get({ ...credentials, snapshotId: snapshot.id })
    assert.equal(left.status, deleteOrphanSnapshots ? 'deleted' : 'created')
  }
})

withSandbox('faults look to the SDK as the real ones do', async sandbox => {
  const starts = async () => (await requests('/cmd$')).length
  await knob('/cmd$', { error: 'html_502' })
  assert.equal((await shell(sandbox, 'echo a >> runs')).exitCode, 0)
  assert.equal(await starts(), 2, 'the SDK asks again')
  await knob('/cmd$', { drop: 'after' })
  await shell(sandbox, 'echo b >> runs')
  assert.equal(await (await shell(sandbox, 'cat runs')).stdout(), 'a\nb\nb\n', 'and so runs a command twice')
  await knob('/cmd$', { error: 'sandbox_stopping' })
  assert.equal((await shell(sandbox, 'true')).exitCode, 0)
  await knob('/cmd$', { frame: { n: 2, kind: 'error' } })
  await assert.rejects(shell(sandbox, 'true'), error => error instanceof StreamError &&
    error.code === 'sandbox_stream_closed')
  await knob('/cmd$', { after_events: 1, how: 'end' })
  await assert.rejects(shell(sandbox, 'sleep 1000'), error => error instanceof StreamError &&
    error.code === 'stream_ended_early')
  await knob('/cmd$', { error: 'rate_limited_long' })
  await assert.rejects(shell(sandbox, 'true'), error => error.response.status === 429)
})
