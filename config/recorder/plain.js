// plain spells a configuration as JSON text without losing what JSON cannot say: a value that is no data is written as
// { "jr2:not-data": "<what it is>" }, and an undefined property is left out, which equals absent.
export function plain(value) {
  return JSON.stringify(spell(value, new Set(), 0));
}

const alien = (what) => ({ "jr2:not-data": what });

// A whole number beyond 2^53 has lost its last digits already, so it is no longer what the author wrote.
function spellNumber(value) {
  if (!Number.isFinite(value)) return alien(String(value));
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? alien("whole number that JavaScript cannot hold exactly") : value;
}

// A hole of a list is no value at all; JSON would make it null.
function spellList(value, above, depth) {
  const out = [];
  for (let i = 0; i < value.length; i++) out.push(i in value ? spell(value[i], above, depth) : alien("hole in a list"));
  return out;
}

function spell(value, above, depth) {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return spellNumber(value);
  if (typeof value !== "object") return alien(value === undefined ? "undefined" : typeof value === "function" ? "function" : typeof value);
  if (above.has(value)) return alien("circular reference");
  if (depth > 64) return alien("structure that is nested too deeply");
  above.add(value);
  let out;
  if (Array.isArray(value)) out = spellList(value, above, depth + 1);
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
