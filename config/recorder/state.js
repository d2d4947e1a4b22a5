// What the authoring functions remember about Machines, and how they refuse. One copy exists per evaluation: every importer of
// @jr2/* gets this one.
//
// Everything is keyed by machine.config, not by the Machine: provide() makes a new Machine with the same config.
export const open = Symbol.for("jr2.open");
export const seats = new WeakMap(); // config → { image, user, size, userSize, repos }: a Workspace
export const transparent = new WeakMap(); // config → the slot that a path skips
export const doors = new WeakSet(); // configs that declare the shape of their input
export const agents = new WeakMap(); // logic → declaration
export const events = new WeakSet(); // frozen event definitions

export class Refusal extends Error {
  constructor(rule, message) {
    super(message);
    this.jr2Rule = rule;
  }
}
export function refuse(rule, message) {
  throw new Refusal(rule, message);
}

export const isMachine = (value) => !!value && typeof value === "object" && !!value.root && !!value.config;
export const isMap = (value) => !!value && typeof value === "object" && !Array.isArray(value);
export const own = (object, key) => Object.prototype.hasOwnProperty.call(object, key);
export const list = (names) => (names.length ? names.map((n) => JSON.stringify(n)).join(", ") : "none");
export const slotsOf = (machine) => (machine.implementations && machine.implementations.actors) || {};

// declarationOf reads an Agent out of an actor slot. Not by `definition` alone: every Machine of the real xstate has one too.
export function declarationOf(logic) {
  if (!logic || typeof logic !== "object") return undefined;
  if (agents.has(logic)) return agents.get(logic);
  if (logic.root) return undefined;
  const d = logic.definition;
  return isMap(d) && (typeof d.model === "string" || d.model === open) && typeof d.instructions === "string" ? d : undefined;
}

// say spells a value that is not what was wanted, in few words.
export function say(value) {
  if (value === undefined) return "undefined";
  if (value === null) return "null";
  if (value === open) return "open";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string") return JSON.stringify(value.length > 80 ? value.slice(0, 80) + "…" : value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const name = typeof value === "object" && value.constructor && value.constructor.name;
  return typeof value === "object" ? (name && name !== "Object" ? `a ${name} object` : "an object") : `a ${typeof value}`;
}

// mark says which Workflow is being loaded, so that an error can name it.
export const mark = (index) => void (globalThis.jr2mark = index);
