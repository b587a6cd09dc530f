// SPDX-License-Identifier: ISC
// The official `sandbox` command line against the fake, each run a process of its own. Run by sdk_test.sh.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { afterEach, test } from 'node:test'
import { promisify } from 'node:util'

const base = process.env.FAKE_URL
const work = process.env.WORK
const cli = ['--import', './redirect.mjs', 'node_modules/sandbox/bin/sandbox.mjs']
const scope = ['--scope', 'team_test', '--project', 'prj_test']
const env = { ...process.env, VERCEL_AUTH_TOKEN: 'tok_test' }

async function fake (method, path, body) {
  const answer = await fetch(`${base}/_fake/${path}`, { method, body: body && JSON.stringify(body) })
  assert.equal(answer.status, 200, `${method} ${path}`)
  return answer.json()
}

/** Runs `sandbox COMMAND...`; {code, stdout, stderr}. */
async function sandbox (...words) {
  const [command, ...rest] = words
  try {
    const line = [...cli, ...command.split(' '), ...scope, ...rest]
    return { code: 0, ...await promisify(execFile)(process.execPath, line, { env }) }
  } catch (error) {
    if (typeof error.code !== 'number') throw error
    return error
  }
}

/** The same on a terminal of 33 rows and 101 columns, to type at. */
class Screen {
  seen = ''
  waiters = []

  constructor (...words) {
    const [command, ...rest] = words
    const line = [process.execPath, ...cli, ...command.split(' '), ...scope, ...rest].map(word => `'${word}'`).join(' ')
    this.child = spawn('script', ['-qefc', `stty rows 33 cols 101; tty > '${work}/tty'; exec ${line}`, '/dev/null'],
      { env, stdio: ['pipe', 'pipe', 'inherit'] })
    this.code = new Promise(resolve => this.child.on('close', code => {
      for (const waiter of this.waiters) waiter.reject(new Error(`ended with ${code}: ${this.seen}`))
      resolve(code)
    }))
    this.child.stdout.on('data', data => {
      this.seen += data
      this.waiters = this.waiters.filter(waiter => !(this.seen.includes(waiter.wanted) && (waiter.resolve(), true)))
    })
  }

  type (text) {
    this.child.stdin.write(text)
  }

  until (wanted) {
    if (this.seen.includes(wanted)) return Promise.resolve()
    return new Promise((resolve, reject) => this.waiters.push({ wanted, resolve, reject }))
  }
}

async function create (name = 'box') {
  const made = await sandbox('create', '--name', name, '--silent')
  assert.equal(made.code, 0, made.stderr)
}

function cliTest (name, body) {
  test(name, { timeout: 120000 }, body)
}

afterEach(() => fake('POST', 'reset'))

cliTest('create and list', async () => {
  const made = await sandbox('create', '--name', 'box', '--timeout', '10m', '--vcpus', '4', '--tag', 'team=x')
  assert.equal(made.code, 0, made.stderr)
  assert.match(made.stdout + made.stderr, /box/)
  const [box] = await fake('GET', 'sandboxes')
  assert.deepEqual([box.name, box.timeout, box.vcpus, box.tags, box.persistent],
    ['box', 600000, 4, { team: 'x' }, true])
  const listed = await sandbox('list', '--tag', 'team=x')
  assert.match(listed.stdout, /box\s+running/)
  assert.doesNotMatch((await sandbox('list', '--tag', 'team=y')).stdout, /box/)
})

cliTest('exec gives output and status', async () => {
  await create()
  const ran = await sandbox('exec', '-w', '/tmp', '-e', 'A=1', 'box', 'sh', '-c', 'pwd; echo $A; echo err >&2; exit 7')
  assert.equal(ran.code, 7)
  assert.equal(ran.stdout, '/tmp\n1\n')
  assert.match(ran.stderr, /^err$/m)
  assert.equal((await sandbox('exec', '--sudo', 'box', 'id', '-u')).stdout, '0\n')
  const late = await sandbox('exec', '--timeout', '1s', 'box', 'sleep', '1000')
  assert.equal(late.code, 137)
})

cliTest('cp in and out', async () => {
  await create()
  await writeFile(`${work}/in`, Buffer.from([0, 255, 10, 128]))
  assert.equal((await sandbox('cp', `${work}/in`, 'box:/vercel/sub/file')).code, 0)
  assert.equal((await sandbox('cp', 'box:/vercel/sub/file', `${work}/out`)).code, 0)
  assert.deepEqual([...await readFile(`${work}/out`)], [0, 255, 10, 128])
  assert.match((await sandbox('cp', 'box:/vercel/none', `${work}/none`)).stderr, /File not found/)
})

cliTest('exec on a terminal: size, keys, resize, status', async () => {
  await create()
  const screen = new Screen('exec', '-i', '-e', 'FOO=bar', 'box', 'sh', '-c',
    'stty size; echo "$FOO in $PWD on $TERM"; while read -r line; do echo "<$line> $(stty size)"; done; exit 42')
  await screen.until('33 101')
  await screen.until('bar in /vercel on xterm-256color')
  screen.type('typed\r')
  await screen.until('<typed> 33 101')
  const tty = (await readFile(`${work}/tty`, 'utf8')).trim()
  await promisify(execFile)('stty', ['-F', tty, 'rows', '40', 'cols', '120'])
  for (let n = 0; !screen.seen.includes('40 120'); n++) {
    screen.type(`${n}\r`)
    await screen.until(`<${n}> `)
  }
  screen.type('\x04')
  assert.equal(await screen.code, 42)
})

cliTest('connect is a shell, and root with --sudo', async () => {
  await create()
  const screen = new Screen('connect', '--sudo', 'box')
  await screen.until('▲')
  screen.type('echo "id=$(id -u)"; exit 5\r')
  await screen.until('id=0')
  assert.equal(await screen.code, 5)
})

cliTest('stop, run again, snapshot, remove', async () => {
  await create()
  await sandbox('exec', 'box', 'sh', '-c', 'echo kept > f')
  const stopped = await sandbox('stop', 'box')
  assert.equal(stopped.code, 0)
  assert.match(stopped.stderr, /Sandbox stopped[^]*snapshot: snap_/)
  assert.match((await sandbox('list', '--all')).stdout, /box\s+stopped/)
  assert.equal((await sandbox('exec', 'box', 'cat', 'f')).stdout, 'kept\n')
  assert.match((await sandbox('sessions list', '--all', 'box')).stdout, /running[^]*stopped/)
  assert.match((await sandbox('snapshot', '--stop', '--expiration', '0', 'box')).stderr, /Snapshot snap_\w+ created/)
  assert.match((await sandbox('snapshots list')).stdout, /snap_\w+\s+created[^]*snap_\w+\s+created/)
  assert.equal((await sandbox('rm', '--delete-orphan-snapshots', 'box')).code, 0)
  assert.doesNotMatch((await sandbox('list', '--all')).stdout, /box/)
  assert.doesNotMatch((await sandbox('snapshots list')).stdout, /snap_/)
})

cliTest('errors are told as the service words them', async () => {
  const lost = await sandbox('exec', 'nobody', 'true')
  assert.notEqual(lost.code, 0)
  assert.match(lost.stderr, /404|not found/i)
  await create()
  const twice = await sandbox('create', '--name', 'box')
  assert.notEqual(twice.code, 0)
  assert.match(twice.stderr, /already exists/)
})
