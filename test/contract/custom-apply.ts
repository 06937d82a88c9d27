import { beforeAll, expect } from 'vitest'
import type { KubeObject } from '../../shared/kinds/object.ts'
import { refusal } from './api.ts'
import { widget, widgetCrd, widgetCrdPath, widgetGroup } from './objects.ts'
import type { Part } from './suite.ts'

const gizmo = (...args: Parameters<typeof widget>): KubeObject => ({ ...widget(...args), kind: 'Gizmo' })

/** What apply does to custom resources only: their types are those of a schema, not of the server. */
export function customApplyContract({ api, it }: Part): void {
  let base = ''
  beforeAll(async () => {
    await api().post(widgetCrdPath, widgetCrd('gizmos', 'Gizmo'))
    base = `/apis/${widgetGroup}/v1/namespaces/${await api().namespace()}/gizmos`
    await api().until(base, ({ code }) => code === 200)
  })

  it('a null that may not be one is dropped from a body, but an apply of it is a 422', async () => {
    const made = await api().post(base, gizmo('nulled', { size: 1, map: null }))
    expect(made.body.spec).toEqual({ size: 1, color: 'red' })
    const applied = await api().apply(`${base}/null`, gizmo('null', { size: 1, map: null, color: null }))
    expect(refusal(applied).message).toBe(
      `Gizmo.${widgetGroup} "null" is invalid: spec.map: Invalid value: "null": spec.map in body must be of type object: "null"`,
    )
  })

  it('an apply that empties a map leaves a null, which is a 422', async () => {
    await api().apply(`${base}/emptied`, gizmo('emptied', { size: 1, map: { a: '1' } }))
    const emptied = await api().apply(`${base}/emptied`, gizmo('emptied', { size: 1, map: {} }))
    expect(refusal(emptied).code).toBe(422)
    expect((await api().apply(`${base}/emptied`, gizmo('emptied', { size: 1 }))).body.spec).toEqual({
      size: 1,
      color: 'red',
    })
  })

  it('a finalizer needs no domain', async () => {
    const { code } = await api().post(
      `${base}?dryRun=All`,
      gizmo('held', { size: 1 }, { metadata: { finalizers: ['mine'] } }),
    )
    expect(code).toBe(201)
  })

  it('what is wrong with a status is told from within it', async () => {
    await api().post(base, gizmo('told', { size: 1 }))
    const answer = await api().patch(`${base}/told/status`, { status: { replicas: 'x' } })
    expect(answer.body).toHaveProperty('details.causes.0', {
      reason: 'FieldValueTypeInvalid',
      message: 'Invalid value: "string": replicas in body must be of type integer: "string"',
      field: 'status.replicas',
    })
  })
}
