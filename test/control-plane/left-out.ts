import type { TestProject } from 'vitest/node'

/** Global set-up of the project `unit`: says at the end which tests did not run, unless they did. */
export function setup(project: TestProject): (() => void) | undefined {
  if (project.vitest.projects.some(({ name }) => name === 'cluster')) return undefined
  return () =>
    console.log(
      'Left out: the tests against a real API server. Run them with `npm run test:cluster` (needs Go once).',
    )
}
