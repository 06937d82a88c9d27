import { isObject, type KubeObject, type StoredObject } from '../../kinds/object.ts'
import { metadataOnly, type Shape, wireObject } from '../http/wire.ts'
import type { ApiResource, Column } from '../resources.ts'
import { age, nameColumn } from './columns.ts'
import { readJsonPath } from './json-path.ts'

/** The form in which kubectl asks for what it prints. */
export interface Table {
  kind: 'Table'
  apiVersion: 'meta.k8s.io/v1'
  metadata: object
  columnDefinitions: object[] | null
  rows: object[]
}

/** A table of these objects; `isFollowUp` leaves the columns out, as in all but the first event of a watch. */
export function tableOf(
  resource: ApiResource,
  items: StoredObject[],
  metadata: object,
  { includeObject }: Pick<Shape, 'includeObject'>,
  now: Date,
  isFollowUp = false,
): Table {
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: isFollowUp ? null : resource.columns.map(definitionOf),
    rows: items.map((item) => ({
      cells: resource.columns.map((column) => column.cell(item, now)),
      object:
        includeObject === 'None'
          ? null
          : includeObject === 'Metadata'
            ? metadataOnly(item)
            : wireObject(resource, item),
    })),
  }
}

function definitionOf({ name, type, format = '', description = '', priority = 0 }: Column): object {
  return { name, type, format, description, priority }
}

const ageColumn: Column = {
  name: 'Age',
  type: 'date',
  description: 'How long ago the object was created.',
  cell: (object, now) => age(object.metadata?.creationTimestamp, now),
}

/** The columns of a CRD's version: the name, then its `additionalPrinterColumns`, or the age where it has none. */
export function columnsOfCrd(definitions: unknown): Column[] {
  const defined = Array.isArray(definitions) ? definitions.filter(isObject) : []
  if (defined.length === 0) return [nameColumn, ageColumn]
  return [nameColumn, ...defined.map(columnOf)]
}

function columnOf(definition: Record<string, unknown>): Column {
  const jsonPath = String(definition.jsonPath ?? '')
  const type = String(definition.type ?? 'string')
  const read = readJsonPath(jsonPath)
  return {
    name: String(definition.name ?? ''),
    type,
    format: String(definition.format ?? ''),
    description: String(
      definition.description || `Custom resource definition column (in JSONPath format): ${jsonPath}`,
    ),
    priority: Number(definition.priority ?? 0),
    cell: (object: KubeObject, now: Date) => cellOf(read(object), type, now),
  }
}

/** A value as a cell: null where there is none or where it is not of the column's type. */
function cellOf(values: unknown[], type: string, now: Date): unknown {
  if (values.length === 0) return null
  const [value] = values
  switch (type) {
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null
    case 'number':
      return typeof value === 'number' ? value : null
    case 'boolean':
      return typeof value === 'boolean' ? value : null
    case 'date':
      return typeof value === 'string' ? age(value, now) : null
    default:
      return values.map(shown).join(',')
  }
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
