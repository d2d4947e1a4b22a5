// workspace, pool and customize: the parts of a Sandbox, and the rules W6 to W16 about them.
import { agent, createMachine, gate } from "jr2:machines";
import { checkImage, checkRepos, checkSize, checkUser, repoValue } from "jr2:parts";
import { declarationOf, doors, isMachine, isMap, list, open, own, refuse, say, seats, slotsOf, transparent } from "jr2:state";

export function workspace(body, options = {}) {
  const caller = "workspace()";
  if (!isMachine(body)) refuse("W6", `${caller}: the body is no Machine but ${say(body)}`);
  if (doors.has(body.config))
    refuse("W6", `${caller}: the body (Machine ${say(body.config.id)}) declares an input of its own — the door of a Workspace is the ` +
      "`input` of workspace()");
  if (!isMap(options)) refuse("W8", `${caller}: want options, got ${say(options)}`);
  const seat = { image: checkImage(caller, "image", options.image), ...checkUser(caller, options.user) };
  seat.size = checkSize(`${caller}: resources`, options.resources);
  seat.repos = checkRepos(caller, options.repos);
  const machine = createMachine(
    { id: "workspace", initial: "active", states: { active: { invoke: { src: "body" } }, ended: { type: "final" } } },
    { actors: { body } },
  );
  return keep(machine, seat, "body", options.input !== undefined);
}

export function pool(worker, spec = {}) {
  if (!isMachine(worker)) refuse("W13", `pool(): the worker is no Machine but ${say(worker)}`);
  const machine = createMachine(
    { id: spec.id ?? "pool", initial: "active", states: { active: { invoke: { src: "worker" } }, ended: { type: "final" } } },
    { actors: { worker, next: gate, gate } },
  );
  transparent.set(machine.config, "worker");
  if (spec.input !== undefined) doors.add(machine.config);
  return machine;
}

function keep(machine, seat, slot, door) {
  if (seat) seats.set(machine.config, seat);
  if (slot) transparent.set(machine.config, slot);
  if (door) doors.add(machine.config);
  return machine;
}

export function customize(machine, parts) {
  return customizeAt(machine, parts, "customize()");
}

function customizeAt(machine, parts, caller) {
  if (!isMachine(machine)) refuse("W13", `${caller}: want a Machine, got ${say(machine)}`);
  if (parts === undefined) return machine;
  if (!isMap(parts)) refuse("W13", `${caller}: want an object of parts, got ${say(parts)}`);
  for (const key of Object.keys(parts))
    if (!["agents", "actors", "image", "user", "repos", "resources"].includes(key))
      refuse("W14", `${caller}: ${say(key)} is no part — agents, actors, image, user, repos, resources`);
  const change = {};
  if (parts.user !== undefined) Object.assign(change, checkUser(caller, parts.user));
  if (parts.resources !== undefined) change.size = checkSize(`${caller}: resources`, parts.resources);
  if (parts.agents !== undefined || parts.actors !== undefined)
    machine = descend(machine, (inner) => replaceSlots(inner, parts, caller));
  if (parts.image !== undefined) change.image = checkImage(caller, "image", parts.image);
  if (parts.repos !== undefined) change.repos = parts.repos;
  return Object.keys(change).length ? reseat(machine, change, caller) : machine;
}

// descend applies a change to the first Machine below transparent slots, the first that an author wrote.
function descend(machine, change) {
  const slot = transparent.get(machine.config);
  if (slot === undefined) return change(machine);
  return machine.provide({ actors: { [slot]: descend(slotsOf(machine)[slot], change) } });
}

function replaceSlots(machine, parts, caller) {
  const slots = slotsOf(machine);
  const replaced = {};
  for (const [slot, override] of entries(parts.agents, `${caller}: agents`)) {
    const stock = own(slots, slot) ? declarationOf(slots[slot]) : undefined;
    if (!stock) {
      const names = Object.keys(slots).filter((key) => declarationOf(slots[key]));
      refuse("W12", `${caller}: agents.${slot}: Machine ${say(machine.config.id)} carries no such Agent — its Agents: ${list(names)}`);
    }
    if (!isMap(override)) refuse("W12", `${caller}: agents.${slot}: want a part of a declaration, got ${say(override)}`);
    replaced[slot] = agent(checkDeclaration(`${caller}: agents.${slot}`, { ...stock, ...override }));
  }
  for (const [slot, childParts] of entries(parts.actors, `${caller}: actors`)) {
    if (!own(slots, slot) || !isMachine(slots[slot])) {
      const names = Object.keys(slots).filter((key) => isMachine(slots[key]));
      refuse("W13", `${caller}: actors.${slot}: Machine ${say(machine.config.id)} has no such child Machine — its children: ${list(names)}`);
    }
    replaced[slot] = customizeAt(slots[slot], childParts, `${caller}: actors.${slot}`);
  }
  return Object.keys(replaced).length ? machine.provide({ actors: replaced }) : machine;
}

function entries(map, where) {
  if (map === undefined) return [];
  if (!isMap(map)) refuse("W12", `${where}: want a map of slots, got ${say(map)}`);
  return Object.entries(map).filter(([, value]) => value !== undefined);
}

// checkDeclaration refuses an Agent that would vanish from the walk: the usual cause is an environment variable that is not set.
export function checkDeclaration(where, d) {
  if (!isMap(d)) refuse("model", `${where}: want a declaration, got ${say(d)}`);
  if (d.model !== open && (typeof d.model !== "string" || d.model === ""))
    refuse("model", `${where}: model is ${say(d.model)} — "<provider>/<model>", or open; a variable that is not set gives undefined`);
  if (typeof d.instructions !== "string") refuse("model", `${where}: instructions is ${say(d.instructions)} — want a string`);
  if (d.workspace !== undefined && !["write", "read", "none"].includes(d.workspace))
    refuse("model", `${where}: workspace is ${say(d.workspace)} — "write", "read" or "none"`);
  if (d.thinkingLevel !== undefined && !["off", "minimal", "low", "medium", "high", "xhigh"].includes(d.thinkingLevel))
    refuse("model", `${where}: thinkingLevel is ${say(d.thinkingLevel)} — off, minimal, low, medium, high or xhigh`);
  return d;
}

// reseat rebuilds the first Workspace of the chain with a config of its own, so that the original keeps its parts.
function reseat(machine, change, caller) {
  const seat = seats.get(machine.config);
  const slot = transparent.get(machine.config);
  if (!seat) {
    if (slot === undefined)
      refuse("W14", `${caller}: ${list(Object.keys(change).filter((k) => k !== "userSize"))} needs a Workspace, and Machine ` +
        `${say(machine.config.id)} is none`);
    return machine.provide({ actors: { [slot]: reseat(slotsOf(machine)[slot], change, caller) } });
  }
  const next = { ...seat, ...change };
  if (change.size) next.size = { ...seat.size, ...change.size };
  if (own(change, "repos")) next.repos = layerRepos(seat.repos, change.repos, caller);
  const rebuilt = createMachine({ ...machine.config }, machine.implementations);
  return keep(rebuilt, next, slot, doors.has(machine.config));
}

function layerRepos(declared, repos, caller) {
  if (declared === open) {
    const written = isMap(repos) ? Object.fromEntries(entries(repos, `${caller}: repos`)) : repos;
    if (isMap(written) && Object.keys(written).length === 0)
      refuse("W16", `${caller}: repos names no slot, and the map is open — name at least one`);
    return checkRepos(caller, written);
  }
  const given = new Map(entries(repos, `${caller}: repos`));
  for (const slot of given.keys())
    if (!declared.some((d) => d.slot === slot))
      refuse("W15", `${caller}: repos.${slot}: no such Repo Slot — declared: ${list(declared.map((d) => d.slot))}`);
  return declared.map((d) => (given.has(d.slot) ? repoValue(caller, d.slot, given.get(d.slot)) : d));
}
