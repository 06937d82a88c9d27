import { systemClock } from '../../clock.ts'

/**
 * Loaded into each process of the local Knative before its own code (`node --import`): when the runner is gone, however
 * it went, the process ends too. It hangs on the channel that the runner holds open.
 */

/** From asking the process to end to ending it, in ms. */
const goodbyeMs = 5_000

function goodbye(): void {
  process.kill(process.pid, 'SIGTERM')
  systemClock.sleep(goodbyeMs).then(
    () => process.kill(process.pid, 'SIGKILL'),
    () => {},
  )
}

if (process.connected) {
  process.on('disconnect', goodbye)
  // The channel alone must not keep a process alive that has nothing more to do.
  process.channel?.unref()
} else {
  // The runner went while this process was starting, so nobody will tell.
  goodbye()
}
