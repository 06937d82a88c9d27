import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { sink } from '../../shared/cloudevents/sink.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { functionsSuite } from './suite.ts'

functionsSuite(realCluster)

test('a sink behind TLS is believed by the certificates of K_CA_CERTS alone', async () => {
  const common = { url: realCluster.server, clock: systemClock, userAgent: 'test' }
  const event = { specversion: '1.0', id: 'i', source: '/s', type: 't', extensions: {} } as const
  const trusting = sink({ ...common, caCerts: readFileSync(realCluster.caFile, 'utf8') })
  const strict = sink(common)
  try {
    expect((await trusting.send(event)).status).toBeGreaterThanOrEqual(400)
    await expect(strict.send(event)).rejects.toMatchObject({ name: 'SinkError', reason: 'failed' })
  } finally {
    await Promise.all([trusting.close(), strict.close()])
  }
})
