import { defineConfig } from "@jr2/orchestrator";
export default defineConfig({
  name: "fx-hold",
  registry: process.env.JR2_REGISTRY,
  git: { credentials: [{ match: "git.example.test/team/", token: "JR2_GIT_TOKEN" }] },
});
