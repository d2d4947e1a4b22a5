import { defineConfig } from "@jr2/orchestrator";
export default defineConfig({
  name: "fx-review",
  registry: process.env.JR2_REGISTRY,
  sandbox: { resources: { limits: { memory: "4Gi", cpu: "2" } } },
  git: { credentials: [{ match: "git.example.test/team/", token: "JR2_GIT_TOKEN", sshKey: "jr2-git-ssh" }] },
});
