// @jr2/agent-protocol: the events that Machines and Agents exchange.
import { events, isMap, refuse, say } from "jr2:state";

export function defineEvent(definition) {
  if (!isMap(definition)) refuse("W1", `defineEvent(): want an event definition, got ${say(definition)}`);
  const { name } = definition;
  if (typeof name !== "string" || !/^[a-zA-Z0-9_-]+$/.test(name))
    refuse("W1", `defineEvent(): name ${say(name)} is none — letters, digits, "_" and "-"`);
  const event = { ...definition, semantics: definition.semantics ?? "ack", audience: definition.audience ?? "any" };
  if (event.semantics === "deferred" && !event.output)
    refuse("W2", `defineEvent(): ${say(name)} is deferred and so needs an output`);
  if (!["any", "agent", "external"].includes(event.audience))
    refuse("W1", `defineEvent(): ${say(name)} has the audience ${say(event.audience)} — "any", "agent" or "external"`);
  Object.freeze(event);
  events.add(event);
  return event;
}

export const isEventDef = (value) => isMap(value) && events.has(value);
export const eventMap = (definitions) => Object.fromEntries(definitions.map((d) => [d.name, d]));

const anything = Object.freeze({});
export const doneEvent = /* @__PURE__ */ defineEvent({ name: "done", audience: "agent", input: anything });
export const requestReviewEvent = /* @__PURE__ */ defineEvent({ name: "request_review", audience: "agent", input: anything });
export const reportBlockedEvent = /* @__PURE__ */ defineEvent({ name: "report_blocked", audience: "agent", input: anything });
export const exampleEvents = [doneEvent, requestReviewEvent, reportBlockedEvent];
