/**
 * What the embedded server does not do, or does otherwise, by the name of the test that shows it on the real one. This is the whole
 * list; the README repeats it.
 */
export const embeddedSkips: Record<string, string> = {}

/** What the contract cannot show on the real server of the tests. */
export const realSkips: Record<string, string> = {
  'its rollout ends: observed, counted, and told in conditions':
    'the control plane of the tests runs no Deployment controller, so that a test can write a status of its own',
}
