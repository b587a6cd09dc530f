// SPDX-License-Identifier: ISC
// Drives the official client over ssh: node client.mjs COMMAND ARGUMENT... Each step prints one line of
// JSON, {"step": NAME, ...}; what is right is for tests/e2e/test_rws_mcp.py to say.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const say = (step, value) => console.log(JSON.stringify({ step, value }));
const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "rwsd-test", version: "1" });
const logs = [];
client.setNotificationHandler(LoggingMessageNotificationSchema, (message) => {
  logs.push(message.params);
});
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
say("server", { info: client.getServerVersion(), capabilities: client.getServerCapabilities() });
await client.ping();
await client.setLoggingLevel("info");
const call = (name, params, options) =>
  client.callTool({ name, arguments: params }, undefined, options);

say("tools", (await client.listTools()).tools);
say("exec", await call("exec", { command: "echo out; echo err >&2; exit 3" }));
say("failure", await call("read", { path: "../outside" }));
say("write", await call("write", { path: "dir/f.txt", content: "text\n" }));
say("read", await call("read", { path: "dir/f.txt" }));
say("list", await call("list", { path: "dir" }));
say("picture written", await call("write", { path: "p.png", content_base64: process.env.PICTURE }));
say("picture", await call("read", { path: "p.png" }));
say("bytes written", await call("write", { path: "b", content_base64: "/wA=" }));
say("bytes", await call("read", { path: "b" }));
say("snapshot", await call("snapshot_create", { label: "from a client" }));

const progress = [];
const streamed = await call(
  "exec",
  { command: "for i in 1 2 3; do echo line $i; sleep 0.1; done" },
  { onprogress: (step) => progress.push(step) },
);
say("progress", { progress, streamed });

const abort = new AbortController();
const started = new Promise((resolve) => {
  const running = call(
    "exec",
    { command: "echo up; sleep 4721" },
    { signal: abort.signal, onprogress: resolve },
  );
  running.catch((error) => say("cancelled", String(error)));
});
await started;
abort.abort("enough");
say("after", await call("jobs", {}));
try {
  await call("no_such_tool", {});
} catch (error) {
  say("unknown", { code: error.code });
}
say("logs", logs);
await client.close();
