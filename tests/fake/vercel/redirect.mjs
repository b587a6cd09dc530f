// SPDX-License-Identifier: ISC
// Loaded before the SDK or the CLI (node --import): what they fetch from vercel.com, and the health of a sandbox's
// host, goes to the fake as it is. Anything else is refused.
const base = new URL(process.env.FAKE_URL).origin
const plain = globalThis.fetch

function target (url) {
  if (url.origin === base) return url.href
  if (url.origin === 'https://vercel.com' && url.pathname.startsWith('/api/')) return base + url.pathname + url.search
  if (url.hostname === new URL(base).hostname && url.pathname === '/health') return base + '/health'
  throw new Error(`the test would have asked ${url.href}`)
}

globalThis.fetch = (input, init) => {
  const address = new URL(input instanceof Request ? input.url : input)
  return plain(input instanceof Request ? new Request(target(address), input) : target(address), init)
}
