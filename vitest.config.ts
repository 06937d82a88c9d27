import { defineConfig } from 'vitest/config'

/**
 * `unit` needs nothing but Node; `cluster` needs the real control plane (see test/control-plane), which its
 * global set-up starts and stops.
 */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/**/*.cluster.test.ts'],
          globalSetup: ['test/control-plane/left-out.ts'],
        },
      },
      {
        test: {
          name: 'cluster',
          include: ['test/**/*.cluster.test.ts'],
          globalSetup: ['test/control-plane/global-setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
    coverage: { include: ['shared/**', 'functions/**'] },
  },
})
