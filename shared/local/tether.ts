import { systemClock } from '../clock.ts'

/**
 * Loaded into each process of the local Knative before its own code (`node --import`): when the runner is gone, however
 * it went, the process ends too. It hangs on the channel that the runner holds open.
 */

/** From asking the process to end to ending it, in ms. */
const goodbyeMs = 5_000

if (process.channel) {
  process.on('disconnect', () => {
    process.kill(process.pid, 'SIGTERM')
    systemClock.sleep(goodbyeMs).then(
      () => process.kill(process.pid, 'SIGKILL'),
      () => {},
    )
  })
  // The channel alone must not keep a process alive that has nothing more to do.
  process.channel.unref()
}
