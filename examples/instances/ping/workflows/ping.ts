import { assign, fromPromise, setup } from "xstate";
type Types = { input: { text?: string }; context: { text: string; echo: string }; output: { echo: string } };
export const machine = setup({
  types: {} as Types,
  actors: { shout: fromPromise<string, { text: string }>(async ({ input }) => input.text.toUpperCase()) },
}).createMachine({
  id: "ping",
  context: ({ input }) => ({ text: input.text ?? "hello", echo: "" }),
  initial: "echoing",
  states: {
    echoing: {
      invoke: {
        src: "shout",
        input: ({ context }) => ({ text: context.text }),
        onDone: { target: "ended", actions: assign({ echo: ({ event }) => event.output }) },
        onError: "ended",
      },
    },
    ended: { type: "final" },
  },
  output: ({ context }) => ({ echo: context.echo }),
});
