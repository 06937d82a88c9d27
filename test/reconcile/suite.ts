import type { TestApi } from '../support/world.ts'
import { children } from './suite/children.ts'
import { concurrency } from './suite/concurrency.ts'
import { convergence } from './suite/convergence.ts'
import { ownership } from './suite/ownership.ts'
import { reports } from './suite/reports.ts'
import { robustness } from './suite/robustness.ts'
import { variants } from './suite/variants.ts'

/**
 * The behaviour of a reconcile (spec section 2) on an API; it runs on the real one and on the embedded one. `courses` is
 * how many random courses of events are tried.
 */
export function reconcileSuite(api: TestApi, { courses }: { courses: number }): void {
  children(api)
  variants(api)
  ownership(api)
  reports(api)
  robustness(api)
  concurrency(api)
  convergence(api, courses)
}
