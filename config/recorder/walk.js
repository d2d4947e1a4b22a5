// walk reads a registered Machine: its parts depth first, each Machine once. path is the chain of slot keys that a customize of
// the registered Machine would walk; null below a Machine that no slot names. A transparent slot adds nothing to it.
import { agents as branded, declarationOf, doors, isMachine, isMap, open, refuse, say, seats, slotsOf, transparent } from "jr2:state";
import { checkDeclaration } from "jr2:workspace";

export function register(name, module) {
  const machine = module.machine;
  if (!machine) refuse("export", "exports no `machine` — export const machine = …");
  if (!isMachine(machine)) refuse("export", `exports a \`machine\` that is no Machine but ${say(machine)}`);
  const found = { name, machineId: word(machine.config.id), hasDoor: doors.has(machine.config), agents: [], workspaces: [], repoParts: [], agentParts: [], notes: [] };
  visit(machine, [], found, { machines: new Set(), agents: new Set() });
  return found;
}

const word = (value) => (typeof value === "string" ? value : "");

function visit(machine, path, found, seen) {
  if (seen.machines.has(machine)) return;
  seen.machines.add(machine);
  const seat = seats.get(machine.config);
  if (seat) takeSeat(seat, path, found);
  const hidden = transparent.get(machine.config);
  for (const [slot, logic] of Object.entries(slotsOf(machine))) {
    const below = slot === hidden || path === null ? path : [...path, slot];
    if (isMachine(logic)) visit(logic, below, found, seen);
    else takeAgent(slot, logic, path, found, seen);
  }
  inline(machine.config, found, seen);
}

function takeSeat(seat, path, found) {
  const repos = seat.repos === open ? [{ slot: "", state: "open" }] : seat.repos;
  for (const { slot, state } of repos) if (state === "open") found.repoParts.push({ path, kind: "repo", slot });
  found.workspaces.push({ path, image: seat.image, user: seat.user, size: seat.size, userSize: seat.userSize, repos });
}

function takeAgent(slot, logic, path, found, seen) {
  if (!logic || typeof logic !== "object") return;
  const d = declarationOf(logic);
  if (!d && !branded.has(logic)) return;
  checkDeclaration(`Agent ${say(slot)}${path && path.length ? ` at ${path.map(say).join(" → ")}` : ""}`, d);
  const isOpen = d.model === open;
  if (isOpen) found.agentParts.push({ path, kind: "agent", slot });
  const entry = {
    path,
    name: slot,
    model: isOpen ? "" : d.model,
    access: d.workspace ?? "write",
    thinkingLevel: d.thinkingLevel,
  };
  const same = canonical([slot, d]);
  if (seen.agents.has(same)) return;
  seen.agents.add(same);
  found.agents.push(entry);
}

// canonical is a declaration as text: blind to the order of keys, with symbols spelled out.
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (isMap(value)) return `{${Object.keys(value).sort().map((key) => JSON.stringify(key) + canonical(value[key])).join()}}`;
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

// inline finds what is invoked by object instead of by slot: state by state, the state's own invokes before its children.
function inline(node, found, seen) {
  if (!isMap(node)) return;
  for (const invoke of [].concat(node.invoke ?? [])) {
    const src = isMap(invoke) ? invoke.src : undefined;
    if (isMachine(src)) visit(src, null, found, seen);
    else if (isMap(src) && declarationOf(src)) {
      found.notes.push("an Agent is invoked by object, so it has no name and no customize can reach it — make it an actor slot");
      takeAgent("", src, null, found, seen);
    }
  }
  if (isMap(node.states)) for (const child of Object.values(node.states)) inline(child, found, seen);
}
