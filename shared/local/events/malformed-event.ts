/** What was wrong with a request that should have carried an event, and the answer that Knative's ingress gives. */
export class MalformedEvent extends Error {
  override readonly name = 'MalformedEvent'
  readonly status: 400 | 500

  constructor(message: string, status: 400 | 500 = 400) {
    super(message)
    this.status = status
  }
}
