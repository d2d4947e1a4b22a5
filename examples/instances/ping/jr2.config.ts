import { defineConfig } from "@jr2/orchestrator";
export default defineConfig({ name: "fx-ping" });
