// plain spells a configuration as JSON text without losing what JSON cannot say: a value that is no data is written as
// { "jr2:not-data": "<what it is>" }, and an undefined property is left out, which equals absent.
export function plain(value) {
  return JSON.stringify(spell(value, new Set(), 0));
}

const alien = (what) => ({ "jr2:not-data": what });

function spell(value, above, depth) {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : alien(String(value));
  if (typeof value !== "object") return alien(value === undefined ? "undefined" : typeof value === "function" ? "function" : typeof value);
  if (above.has(value)) return alien("circular reference");
  if (depth > 64) return alien("structure that is nested too deeply");
  above.add(value);
  let out;
  if (Array.isArray(value)) out = value.map((v) => spell(v, above, depth + 1));
  else if (typeof value.then === "function") out = alien("promise");
  else if (value instanceof Map || value instanceof Set || value instanceof Date || value instanceof RegExp || value instanceof URL)
    out = alien(value.constructor.name + " object");
  else {
    out = {};
    for (const key of Object.keys(value))
      if (value[key] !== undefined)
        Object.defineProperty(out, key, { value: spell(value[key], above, depth + 1), enumerable: true, configurable: true, writable: true });
  }
  above.delete(value);
  return out;
}
