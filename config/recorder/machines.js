// agent, gate and jr2Setup: the Machines that an author writes, and the rules W3, W4 and W5 about their events.
import { createMachine, fromCallback, setup } from "xstate";
import { agents, declarationOf, doors, isMap, list, own, refuse, say } from "jr2:state";
import { isEventDef } from "jr2:protocol";

const inert = () => fromCallback(() => {});

export const gate = /* @__PURE__ */ inert();

export function agent(declaration) {
  const logic = inert();
  logic.definition = declaration;
  agents.set(logic, declaration);
  return logic;
}

export const source = (spec) => spec;

export function jr2Setup(options = {}) {
  const { events: vocabulary = [], actors = {}, ...rest } = options;
  const known = vocabularyOf(vocabulary);
  const slots = { gate, ...actors };
  return wrap(setup({ ...rest, actors: slots }), known, slots);
}

// wrap replaces createMachine of a setup result, and of what its extend gives.
function wrap(made, known, slots) {
  const wrapped = { ...made, createMachine: (config) => build(made, config, known, slots) };
  if (typeof made.extend === "function")
    wrapped.extend = (more = {}) => wrap(made.extend(more), known, { ...slots, ...more.actors });
  return wrapped;
}

function build(made, config, known, slots) {
  if (!isMap(config)) refuse("W4", `createMachine(): want the config of a Machine, got ${say(config)}`);
  const { input, ...rest } = config;
  const where = `Machine ${say(rest.id ?? "(no id)")}`;
  checkHandlers(where, rest, known);
  checkMenus(where, rest, known, slots);
  const machine = made.createMachine(rest);
  if (input !== undefined) doors.add(machine.config);
  return machine;
}

function vocabularyOf(vocabulary) {
  if (!Array.isArray(vocabulary)) refuse("W3", `jr2Setup(): events: want a list of event definitions, got ${say(vocabulary)}`);
  const known = new Map();
  vocabulary.forEach((event, i) => {
    if (!isEventDef(event)) refuse("W3", `jr2Setup(): events[${i}] is no event definition but ${say(event)} — defineEvent makes one`);
    if (known.has(event.name)) refuse("W3", `jr2Setup(): events[${i}]: the name ${say(event.name)} is there twice`);
    if (event.semantics !== "ack")
      refuse("W3", `jr2Setup(): events[${i}] (${say(event.name)}): semantics ${say(event.semantics)} is reserved — "ack"`);
    known.set(event.name, event);
  });
  return known;
}

const eventKeys = (node) => (isMap(node.on) ? Object.keys(node.on).filter((k) => k !== "*" && !k.includes(".")) : []);
const childStates = (node) => (isMap(node.states) ? Object.entries(node.states).filter(([, child]) => isMap(child)) : []);

function checkHandlers(where, node, known, path = []) {
  for (const key of eventKeys(node)) {
    if (!known.has(key))
      refuse("W4", `jr2Setup(): ${where}${at(path)}: on.${key} is no declared event — declared: ${list([...known.keys()])}`);
  }
  for (const [key, child] of childStates(node)) checkHandlers(where, child, known, [...path, key]);
}

function checkMenus(where, node, known, slots, path = [], above = []) {
  const forAgents = (n) => eventKeys(n).filter((k) => known.has(k) && known.get(k).audience !== "external");
  const menu = [...above, ...forAgents(node)];
  const invoked = [].concat(node.invoke ?? []).filter((i) => isMap(i) && isAgentSource(i.src, slots));
  if (invoked.length > 0 && menu.length === 0) {
    const buried = [...new Set(below(node, forAgents))];
    if (buried.length > 0)
      refuse("W5", `jr2Setup(): ${where}${at(path)}: Agent ${say(invoked[0].src)} has an empty Menu, while states below handle ` +
        `${list(buried)} — an Agent sees the events of its own state and of those above`);
  }
  for (const [key, child] of childStates(node)) checkMenus(where, child, known, slots, [...path, key], menu);
}

const isAgentSource = (src, slots) =>
  declarationOf(typeof src === "string" ? (own(slots, src) ? slots[src] : undefined) : src) !== undefined;
const below = (node, read) => childStates(node).flatMap(([, child]) => [...read(child), ...below(child, read)]);
const at = (path) => (path.length ? `, state ${say(path.join("."))}` : "");

export { createMachine };
