import type { Hono } from 'hono'
import { mutations } from '../shared/kinds/mutants.ts'
import { type ReconcilerContext, reconcilerApp } from './reconciler.ts'

/** One event, one Mutation (and its token Secret) reconciled. */
export function mutationApp(ctx: ReconcilerContext): Hono {
  return reconcilerApp(mutations, ctx)
}
