import { defineConfig } from 'vitest/config'

/**
 * The tests that mutation testing runs (`npm run test:mutation`, by hand, not in every CI run): the quick ones of the
 * runtime and the planner. Left out are those that take real time, start processes or explore all states.
 */
export default defineConfig({
  test: {
    include: ['test/runtime/*.test.ts', 'test/reconcile/{desired,plan,status}*.test.ts'],
    exclude: ['**/*.cluster.test.ts', '**/{lease-model,package,runtime-embedded}.test.ts'],
  },
})
