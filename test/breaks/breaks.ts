/** The code broken on purpose, one way at a time: what each test must be able to see. */

export interface Break {
  /** The promise that it breaks. */
  promise: string
  /** What is done to the code, in words. */
  what: string
  file: string
  /** Stands exactly once in the file. */
  find: string
  replace: string
}

const act = 'shared/reconcile/act.ts'
const plan = 'shared/reconcile/plan.ts'
const pass = 'shared/reconcile/pass.ts'
const adoption = 'shared/reconcile/adoption.ts'
const workqueue = 'shared/kube/workqueue.ts'
const informer = 'shared/kube/informer.ts'
const watches = 'shared/watching/watches.ts'
const desired = 'shared/reconcile/desired.ts'

const foreign = 'No child of another owner is touched'
const wanted = 'A child whose variant is wanted is never deleted'
const token = 'The token never changes'
const status = 'The status never reports a newer generation than was applied'
const converges = 'All converges once the trouble is over'
const quiet = 'Then nothing is written and nothing sent'
const paused = 'What is paused is left alone'
const lost = 'No change is lost'
const told = 'What was given up is told'
const leads = 'At most one leads'
const input = 'Whatever comes in is answered by the contract'

export const breaks: Break[] = [
  {
    promise: foreign,
    what: 'a Deployment of another controller counts as ours',
    file: adoption,
    find: '  const isOurs = controller?.uid === owner.uid\n  const isFormerOurs',
    replace: '  const isOurs = controller !== undefined\n  const isFormerOurs',
  },
  {
    promise: foreign,
    what: 'any Deployment that nobody controls is taken',
    file: adoption,
    find: "  if (settings.adoption === 'always') return true",
    replace: '  if (settings.adoption) return true',
  },
  {
    promise: foreign,
    what: 'a child that the list does not show is applied with force, not only created',
    file: act,
    find: 'resourceVersion: neverTheVersion } }',
    replace: '} }',
  },
  {
    promise: foreign,
    what: 'a child is deleted by its name, whoever has that by then',
    file: act,
    find: '{ ...act.call, uid, propagation:',
    replace: '{ ...act.call, propagation:',
  },
  {
    promise: foreign,
    what: 'a child is applied by its name, whoever has that by then',
    file: plan,
    find: 'uid: child.metadata.uid } }\n}',
    replace: '} }\n}',
  },
  {
    promise: foreign,
    what: 'what carries the owner label is pruned, whoever owns it',
    file: plan,
    find: 'deletionTimestamp || !isOwned(child, desired)) return false',
    replace: 'deletionTimestamp) return false',
  },
  {
    promise: foreign,
    what: 'legacy adoption does not look at the variant’s label',
    file: adoption,
    find: '    labels[variantLabel] === label &&\n',
    replace: '',
  },
  {
    promise: wanted,
    what: 'the children are listed after the object was read',
    file: pass,
    find: '  const parent = await context.client.get(kind, target, call)\n',
    replace:
      '  const parent = await context.client.get(kind, target, call)\n  const later = await context.client.list(deployments, { namespace: target.namespace, labelSelector, ...call })\n  children.items.splice(0, Number.POSITIVE_INFINITY, ...later.items)\n',
  },
  {
    promise: wanted,
    what: 'after a rename of the base the old child goes at once',
    file: plan,
    find: "    return state === undefined || state === 'Ready'",
    replace: '    return state !== undefined || state === undefined',
  },
  {
    promise: wanted,
    what: 'of a wanted variant the child is pruned as well',
    file: plan,
    find: 'if (wanted.has(name) || deletionTimestamp',
    replace: "if ((wanted.has(name) && !name.endsWith('green')) || deletionTimestamp",
  },
  {
    promise: wanted,
    what: 'an Invalid variant loses the child that runs',
    file: plan,
    find: "    const state = states.get(labels?.[variantLabel] ?? '')\n",
    replace:
      "    const told = states.get(labels?.[variantLabel] ?? '')\n    const state = told === 'Invalid' ? undefined : told\n",
  },
  {
    promise: token,
    what: 'a Secret that is there is written anew',
    file: 'shared/reconcile/token.ts',
    find: '    if (known) return findingOf(known, owner)\n  }\n',
    replace: '    if (known) await client.delete(secrets, { namespace, name }, call)\n  }\n',
  },
  {
    promise: token,
    what: 'somebody else’s Secret of the name is used',
    file: 'shared/reconcile/token.ts',
    find: '  const isOurs = controller?.uid === owner.uid\n  if (isOurs',
    replace: '  const isOurs = known.metadata !== undefined\n  if (isOurs',
  },
  {
    promise: status,
    what: 'the status is written without the version that was read',
    file: pass,
    find: '    metadata: { name, namespace, uid, resourceVersion },\n    status,',
    replace: '    metadata: { name, namespace, uid },\n    status: { ...status, observedGeneration: 99 },',
  },
  {
    promise: status,
    what: 'a child that was not applied is told by how it runs',
    file: act,
    find: "  return { ...kept, verdict: { state: 'Progressing', message } }",
    replace: '  return message ? kept : kept',
  },
  {
    promise: status,
    what: 'a paused child is told by how it runs',
    file: plan,
    find: "    if (desired.paused) return instead(plan, 'Progressing', 'Waits, because the object is paused')",
    replace: '    if (desired.paused) return { variant, ...(plan.child && { child: plan.child }) }',
  },
  {
    promise: converges,
    what: 'no proof at the end of a pass that wrote, when its status stays the same',
    file: pass,
    find: "return run.writes > 0 ? prove(run) : 'settled'",
    replace: "return 'settled'",
  },
  {
    promise: converges,
    what: 'a pass that was overtaken is not done again',
    file: 'shared/reconcile/reconcile.ts',
    find: "      if (pass.end === 'raced') continue\n",
    replace: '',
  },
  {
    promise: converges,
    what: 'trouble with the API server is answered as settled',
    file: 'shared/reconcile/reconcile.ts',
    find: '      if (troubles.length > 0) return { ...found, ...laterFor(troubles) }',
    replace: '      if (troubles.length > 0) return found',
  },
  {
    promise: converges,
    what: 'trouble is answered as if no retry were due',
    file: 'functions/reconciler.ts',
    find: "  if (outcome === 'later')\n",
    replace: "  if (outcome === 'later' && error === undefined)\n",
  },
  {
    promise: converges,
    what: 'nothing is pruned',
    file: pass,
    find: '    await concurrently(childrenAtOnce, unwanted, (child) => prune(act, child))',
    replace:
      '    if (unwanted.length > 99) await concurrently(childrenAtOnce, unwanted, (child) => prune(act, child))',
  },
  {
    promise: converges,
    what: 'a hand edit of a child is not set back',
    file: 'shared/reconcile/repair.ts',
    find: "  if (missing.length === 0) return { is: 'none' }",
    replace: "  if (missing) return { is: 'none' }",
  },
  {
    promise: converges,
    what: 'no hand-off of the replicas',
    file: plan,
    find: "  if (handOff) return { step: { do: 'hand off', object: handOff } }\n",
    replace: '',
  },
  {
    promise: converges,
    what: 'taking over leaves earlier managers their fields',
    file: plan,
    find: "  if (managedFields) return { step: { do: 'take over', child, managedFields } }\n",
    replace: '',
  },
  {
    promise: converges,
    what: 'the resync finds nothing to do',
    file: 'shared/reconcile/needs-work.ts',
    find: '  if (plans.some(({ step }) => step)) return true',
    replace: '  if (plans.some(({ step }) => step)) return false',
  },
  {
    promise: converges,
    what: 'the resync ends after its first page',
    file: 'shared/resync/cursor.ts',
    find: 'next = list.continue ? { scope: token.scope, continue: list.continue } : nextScope(token)',
    replace: 'next = nextScope(token)',
  },
  {
    promise: converges,
    what: 'a resync that ran out of time does not go on',
    file: 'functions/resync.ts',
    find: '    if (tally.next) await sends.send(nextPage(request, tally.next, ctx))\n',
    replace: '',
  },
  {
    promise: converges,
    what: 'a watch that stalls is waited for without end',
    file: informer,
    find: '      idleTimeoutMs: limits.idleTimeoutMs,\n',
    replace: '      idleTimeoutMs: Number.MAX_SAFE_INTEGER,\n',
  },
  {
    promise: converges,
    what: 'a watch goes on from the same version after it has run out (410)',
    file: informer,
    find: '        if (!isExpired(error)) {\n',
    replace: '        if (error) {\n',
  },
  {
    promise: quiet,
    what: 'the status is written at each pass',
    file: pass,
    find: '  if (isSameStatus(before, status)) return',
    replace: '  if (isSameStatus(before, status) && !run.parent) return',
  },
  {
    promise: quiet,
    what: 'a child is applied at each pass',
    file: 'shared/reconcile/repair.ts',
    find: "  if (missing.length === 0) return { is: 'none' }",
    replace: "  if (missing.length > 99) return { is: 'none' }",
  },
  {
    promise: quiet,
    what: 'our own apply brings an event',
    file: 'shared/watching/worth.ts',
    find: '  if (isOwnWrite(change)) return []\n',
    replace: '  if (isOwnWrite(change) && !after) return []\n',
  },
  {
    promise: quiet,
    what: 'a status write brings an event',
    file: 'shared/watching/worth.ts',
    find: "  return before?.state === after.state ? undefined : 'applied'",
    replace: "  return before === after ? undefined : 'applied'",
  },
  {
    promise: quiet,
    what: 'a resync sends an event for each object',
    file: 'functions/resync.ts',
    find: "    if (isOutOfSync || request.mode === 'full')",
    replace: '    if (family)',
  },
  {
    promise: quiet,
    what: 'a watcher that starts sends an event for each object',
    file: watches,
    find: "(change.how === 'initial' && !wasDenied)) return\n",
    replace: '(change.how === undefined && !wasDenied)) return\n',
  },
  {
    promise: quiet,
    what: 'an Event is repeated at each resync',
    file: pass,
    find: "      await context.record(context.cause === 'resync' ? { ...event, once: true } : event, call)",
    replace: '      await context.record(event, call)',
  },
  {
    promise: quiet,
    what: 'a contest with another controller is fought at full speed',
    file: 'shared/reconcile/repair.ts',
    find: 'repairs < repairsAtOnce ? 0 :',
    replace: 'repairs < 10_000 ? 0 :',
  },
  {
    promise: paused,
    what: 'a paused object is applied all the same',
    file: plan,
    find: "    if (desired.paused) return instead(plan, 'Progressing', 'Waits, because the object is paused')\n",
    replace: '',
  },
  {
    promise: paused,
    what: 'a paused object is pruned all the same',
    file: pass,
    find: '  if (!run.stopped && !desired.paused && desired.problem',
    replace: '  if (!run.stopped && desired.problem',
  },
  {
    promise: paused,
    what: 'a paused object gets its Secret all the same',
    file: pass,
    find: '  if (desired.paused) return asKnown\n',
    replace: '',
  },
  {
    promise: lost,
    what: 'what is folded while a key is at work is forgotten',
    file: workqueue,
    find: '      entry.failures = 0\n      settle(entry)',
    replace: '      entry.failures = 0\n      take(entry)\n      settle(entry)',
  },
  {
    promise: lost,
    what: 'an event that the sink refused counts as sent',
    file: 'shared/watching/delivery.ts',
    find: '  if (status >= 200 && status < 300) return { done: true }',
    replace: '  if (status >= 200) return { done: true }',
  },
  {
    promise: lost,
    what: 'an event that got no answer counts as sent',
    file: 'shared/watching/delivery.ts',
    find: "        note(error instanceof SinkError ? error.reason : 'failed', event.type)\n        return { done: false }",
    replace:
      "        note(error instanceof SinkError ? error.reason : 'failed', event.type)\n        return { done: true }",
  },
  {
    promise: lost,
    what: 'what was deleted during a gap of the watch is not noticed',
    file: 'shared/kube/informer-store.ts',
    find: '          for (const key of known.keys()) if (!listed.has(key)) drop(how, key)\n',
    replace: '',
  },
  {
    promise: lost,
    what: 'a watcher that starts asks for no resync',
    file: 'shared/watching/forward.ts',
    find: "    () => askForResync('needed'),\n    () => {},",
    replace: '    () => {},\n    () => {},',
  },
  {
    promise: lost,
    what: 'the owner that a child had before is not told',
    file: 'shared/watching/worth.ts',
    find: '[before?.owner, after?.owner]',
    replace: '[after?.owner]',
  },
  {
    promise: told,
    what: 'trouble in the dead-letter function makes a new dead letter',
    file: 'functions/dead-letter.ts',
    find: '.catch((error) => notTold(error, event, ctx))',
    replace: '',
  },
  {
    promise: told,
    what: 'a dead letter is not told on its object',
    file: 'functions/dead-letter.ts',
    find: '  await ctx.record({ regarding,',
    replace: '  if (!live) await ctx.record({ regarding,',
  },
  {
    promise: leads,
    what: 'who has lost the Lease goes on sending what waits',
    file: 'shared/watching/forward.ts',
    find: '    mayStart: () => options.isLeader() && !settings().paused,',
    replace: '    mayStart: () => !settings().paused,',
  },
  {
    promise: leads,
    what: 'belief is counted from the answer, not from the request',
    file: 'shared/runtime/elector.ts',
    find: 'belief.set(policy.wrote(belief.state(), stored, sentMs, options))',
    replace:
      'belief.set(policy.wrote(belief.state(), stored, Math.max(sentMs, clock.monotonicMs()), options))',
  },
  {
    promise: leads,
    what: 'a conflict at the renewal leaves the belief as it is',
    file: 'shared/runtime/lease.ts',
    find: '  return { ...state, beliefUntilMs: Number.NEGATIVE_INFINITY }\n}\n\n/** The Lease to write so',
    replace: '  return state\n}\n\n/** The Lease to write so',
  },
  {
    promise: leads,
    what: 'a rival’s Lease counts as run out as soon as it is seen',
    file: 'shared/runtime/lease.ts',
    find: 'rival.sinceMs + rival.durationMs - nowMs',
    replace: 'rival.sinceMs - nowMs',
  },
  {
    promise: leads,
    what: 'the Lease is not released at a shutdown',
    file: 'shared/runtime/elector.ts',
    find: '  if (belief.state().attempt === undefined) return\n',
    replace: '  if (belief.state().attempt !== null) return\n',
  },
  {
    promise: input,
    what: 'env in the order of its map',
    file: desired,
    find: '...added.sort().map(',
    replace: '...added.map(',
  },
  {
    promise: input,
    what: 'an unset number of instances is 0',
    file: desired,
    find: "      instances: typeof instances === 'number' ? instances : undefined,",
    replace: '      instances: Number(instances ?? 0),',
  },
  {
    promise: input,
    what: 'a base that is no map is taken apart',
    file: desired,
    find: 'isObject(parent.spec) ? parent.spec.deployment : undefined',
    replace: '(parent.spec as { deployment: unknown }).deployment',
  },
  {
    promise: input,
    what: 'an event of another kind of object is worked on',
    file: 'functions/reconciler.ts',
    find: "      if (target === 'foreign') return notHandled(",
    replace: "      if (target === 'foreign') return settled(",
  },
]
