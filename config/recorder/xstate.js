// A stand-in for xstate, for an Instance that has no node_modules yet: it builds Machine records and runs nothing. What only the
// real package finds (a transition to a state that does not exist) is then found by the Orchestrator.
const fn = (type, more) => Object.assign(() => {}, { type }, more);
const notAtLoad = (name) => () => {
  throw new Error(`${name} is not available while a module is loaded`);
};
const node = (config, key) => ({
  key,
  config,
  states: Object.fromEntries(Object.entries(config.states ?? {}).map(([k, child]) => [k, node(child ?? {}, k)])),
});

export class StateMachine {
  constructor(config, implementations = {}) {
    this.config = config;
    this.id = config.id ?? "(machine)";
    this.implementations = { actors: {}, actions: {}, guards: {}, delays: {}, ...implementations };
    this.root = node(config, this.id);
  }
  provide(more = {}) {
    const merged = {};
    for (const kind of ["actors", "actions", "guards", "delays"]) merged[kind] = { ...this.implementations[kind], ...more[kind] };
    return new StateMachine(this.config, merged);
  }
}
export class StateNode {}
export class Actor {}
export class SimulatedClock {}
export const SpecialTargets = { Parent: "#_parent", Internal: "#_internal" };
export const createMachine = (config, implementations) => new StateMachine(config, implementations);

export const assign = () => fn("xstate.assign");
export const emit = () => fn("xstate.emit");
export const raise = () => fn("xstate.raise");
export const sendTo = () => fn("xstate.sendTo");
export const sendParent = () => fn("xstate.sendTo");
export const forwardTo = () => fn("xstate.sendTo");
export const log = () => fn("xstate.log");
export const cancel = () => fn("xstate.cancel");
export const stop = () => fn("xstate.stopChild");
export const stopChild = stop;
export const spawnChild = (src) => fn("xstate.spawnChild", { src });
export const enqueueActions = () => fn("xstate.enqueueActions");
export const and = () => fn("xstate.and");
export const or = () => fn("xstate.or");
export const not = () => fn("xstate.not");
export const stateIn = () => fn("xstate.stateIn");

const logic = (config) => ({
  config,
  start() {},
  transition: (state) => state,
  getInitialSnapshot: () => ({}),
  getPersistedSnapshot: (state) => state,
  restoreSnapshot: (state) => state,
});
export const fromPromise = logic;
export const fromCallback = logic;
export const fromObservable = logic;
export const fromEventObservable = logic;
export const fromTransition = logic;
export const createEmptyActor = () => logic();

const helpers = { assign, sendTo, raise, log, cancel, stopChild, enqueueActions, emit, spawnChild };
export const setup = ({ actors, actions, guards, delays } = {}) => ({
  ...helpers,
  createStateConfig: (config) => config,
  createAction: (action) => action,
  createMachine: (config) => new StateMachine(config, { actors: { ...actors }, actions, guards, delays }),
  extend: (more = {}) =>
    setup({
      actors: { ...actors, ...more.actors },
      actions: { ...actions, ...more.actions },
      guards: { ...guards, ...more.guards },
      delays: { ...delays, ...more.delays },
    }),
});

export const assertEvent = () => {};
export const matchesState = () => false;
export const mapState = () => [];
export const pathToStateValue = () => ({});
export const isMachineSnapshot = () => false;
export const toObserver = (observer) => observer;
export const createActor = notAtLoad("createActor");
export const interpret = notAtLoad("interpret");
export const waitFor = notAtLoad("waitFor");
export const toPromise = notAtLoad("toPromise");
export const transition = notAtLoad("transition");
export const initialTransition = notAtLoad("initialTransition");
export const getNextSnapshot = notAtLoad("getNextSnapshot");
export const getInitialSnapshot = notAtLoad("getInitialSnapshot");
export const getNextTransitions = notAtLoad("getNextTransitions");
export const getMicrosteps = notAtLoad("getMicrosteps");
export const getInitialMicrosteps = notAtLoad("getInitialMicrosteps");
export const getStateNodes = notAtLoad("getStateNodes");
