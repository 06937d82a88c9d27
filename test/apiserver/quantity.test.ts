import { describe, expect, it } from 'vitest'
import {
  compareQuantities,
  plainQuantity,
  quantityError,
  resourceQuantity,
} from '../../shared/apiserver/defaults/quantity.ts'

describe('quantities', () => {
  it.each([
    ['1000m', '1'],
    ['0.5Gi', '512Mi'],
    ['1500m', '1500m'],
    ['0.1', '100m'],
    ['1024Ki', '1Mi'],
    ['1.5Gi', '1536Mi'],
    ['0', '0'],
    ['0Gi', '0'],
    ['1000Ki', '1000Ki'],
    ['0.5Ki', '512'],
    ['1.0001Ki', '1024103m'],
    ['1e3', '1e3'],
    ['1500e-3', '1500e-3'],
    ['1E', '1E'],
    ['1000000', '1M'],
    ['100k', '100k'],
    ['-1.5', '-1500m'],
    ['+5', '+5'],
    ['01', '01'],
    ['1.5e1', '1.5e1'],
    ['9Ei', '9223372036854775807'],
    ['12345e2', '1234500'],
    ['.5', '500m'],
    ['5.', '5.'],
    ['0.0000000001', '1m'],
  ])('%s is stored as %s', (given, stored) => {
    expect(resourceQuantity(given)).toBe(stored)
  })

  it.each(['', 'x', '1Kb', '1 Gi', '1..5', '-', '1mm', '1ki'])('%j is no quantity', (text) => {
    expect(resourceQuantity(text)).toBeUndefined()
  })

  it.each([
    ['1000m', '1'],
    ['5.', '5.'],
    ['1E3', '1E3'],
    ['0.5Gi', '512Mi'],
    ['1.0001Ki', '1024102400u'],
    ['0.0000000001', '1n'],
  ])('%s outside of a list of resources is stored as %s', (given, stored) => {
    expect(plainQuantity(given)).toBe(stored)
  })

  it('tell what is wrong with them', () => {
    expect(quantityError('1')).toBeUndefined()
    expect(quantityError('3e')).toBe("unable to parse quantity's suffix")
    expect(quantityError('x')).toMatch(/^quantities must match/)
  })

  it('are compared by value, not by spelling', () => {
    expect(compareQuantities('1', '1000m')).toBe(0)
    expect(compareQuantities('1Gi', '1G')).toBe(1)
    expect(compareQuantities('-1', '0')).toBe(-1)
  })
})
