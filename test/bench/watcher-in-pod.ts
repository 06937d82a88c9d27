import { apps, userAgent } from '../../functions/apps.ts'
import { functionConfig } from '../../functions/config.ts'
import { lazyMetrics } from '../../functions/metrics.ts'
import { serve } from '../../functions/serve.ts'
import { systemClock } from '../../shared/clock.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { connect } from '../../shared/kube/connect.ts'
import { createLog } from '../../shared/log.ts'

/** The watcher as `functions/main.ts` starts it in a pod, but with the service account's folder where the bench has it. */
const { env } = process
const clock = systemClock
const config = functionConfig(env)
const log = createLog({ name: 'watcher', level: config.logLevel })
const transport = await connect({ env, clock, inCluster: true, serviceAccountFolder: env.BENCH_FOLDER ?? '' })
const ctx = {
  name: 'watcher',
  client: kubeClient({ transport, clock, userAgent: userAgent('watcher') }),
  clock,
  log,
  metrics: lazyMetrics(),
  cluster: config.cluster,
  deadlineMs: config.deadlineMs,
  draining: new AbortController().signal,
  background: () => {},
}
const made = await apps.watcher?.(ctx, config)
if (made) await serve({ app: made.app, port: 0, clock })
