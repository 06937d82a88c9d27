/** Runs `work` on each item, at most `limit` at a time, and answers in the items' order. All have ended when it throws. */
export async function concurrently<T, R>(
  limit: number,
  items: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  const errors: unknown[] = []
  const queue = items.entries()
  const run = async () => {
    for (const [index, item] of queue) {
      try {
        results[index] = await work(item)
      } catch (error) {
        errors.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, run))
  if (errors.length > 0) throw errors[0]
  return results
}
