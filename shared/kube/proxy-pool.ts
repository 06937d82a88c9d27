import { fetch, ProxyAgent, Socks5ProxyAgent } from 'undici'
import type { HttpPool, Tls } from '../http-pool.ts'

/** Connections through the proxy of a kubeconfig's `proxy-url`: HTTP, HTTPS or SOCKS5. */
export function proxyPool(proxyUrl: string, tls: Tls): HttpPool {
  // A watch may be quiet for long; it has its own limit, and so has each request.
  const options = { allowH2: false, bodyTimeout: 0, requestTls: { ...tls } }
  const dispatcher = proxyUrl.startsWith('socks')
    ? new Socks5ProxyAgent(proxyUrl, options)
    : new ProxyAgent({ ...options, uri: proxyUrl })
  return {
    fetch: (url, init) =>
      fetch(url, { ...init, dispatcher } as Parameters<typeof fetch>[1]) as unknown as Promise<Response>,
    retire() {
      dispatcher.close().catch(() => {})
    },
    destroy() {
      dispatcher.destroy().catch(() => {})
    },
  }
}
