import type { Hono } from 'hono'
import { mutantDeployments } from '../shared/kinds/mutants.ts'
import { type ReconcilerContext, reconcilerApp } from './reconciler.ts'

/** One event, one MutantDeployment reconciled. */
export function mutantDeploymentApp(ctx: ReconcilerContext): Hono {
  return reconcilerApp(mutantDeployments, ctx)
}
