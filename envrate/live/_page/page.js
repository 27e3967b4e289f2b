// The person's client: shows or sounds what arrives, sends keys as actions. Protocol: docs/live.md.
"use strict";

const $ = (id) => document.getElementById(id);
const query = new URLSearchParams(location.search);
const token = query.get("token");
const scheme = location.protocol === "https:" ? "wss" : "ws";
const socket = new WebSocket(`${scheme}://${location.host}/ws${token ? "?token=" + encodeURIComponent(token) : ""}`);
socket.binaryType = "arraybuffer";

let hello = null;
let step = -1;
let receivedAt = 0;
let running = false;
let audio = null;
let playAt = 0;
const trail = [];

// Keys 1 ... 9 are responses, a ... z answer a question.
const responseOf = (key) => (/^[1-9]$/.test(key) && Number(key) < hello.num_symbols ? Number(key) : 0);
const answerOf = (key) => {
  const index = /^[a-z]$/.test(key) ? key.charCodeAt(0) - 96 : 0;
  return index <= hello.num_answers ? index : 0;
};

function send(value, answer) {
  if (!running || step < 0) return;
  const spent = Math.round(performance.now() - receivedAt);
  socket.send(JSON.stringify({ type: "action", step, value, answer, compute_ms: spent }));
}

function press(key) {
  if (!hello) return;
  const value = responseOf(key);
  const answer = answerOf(key);
  if (!value && !answer) return;
  send(value, answer);
  const button = document.querySelector(`#keys button[data-key="${key}"]`);
  if (button) {
    button.classList.add("down");
    setTimeout(() => button.classList.remove("down"), 150);
  }
}

function addKey(key, label) {
  const button = document.createElement("button");
  button.dataset.key = key;
  const cap = document.createElement("kbd");
  cap.textContent = key;
  button.append(cap, label);
  button.onclick = () => press(key);
  $("keys").append(button);
}

function element(name, text, parent) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  parent.append(made);
  return made;
}

// One card per state: what it requires, an example, and how it shows in words.
function showLegend() {
  const { meanings, question } = hello.legend;
  const response = Array.isArray(hello.task.response) ? hello.task.response : null;
  meanings.forEach((meaning, k) => {
    const card = element("figure", "", $("legend"));
    const due = response ? response[k] : 0;
    if (due) card.classList.add("due");
    element("b", response ? `${k}: ${due ? `press ${due}` : "do nothing"}` : `value ${k + 1}`, card);
    if (k < hello.num_samples && hello.modality === "audio") {
      const player = element("audio", "", card);
      player.controls = true;
      player.src = `/sample/${k}`;
    } else if (k < hello.num_samples) {
      const picture = element("img", "", card);
      picture.alt = meaning;
      picture.src = `/sample/${k}`;
    }
    element("span", meaning, card);
  });
  if (hello.num_answers) {
    const card = element("figure", "", $("legend"));
    element("b", "question", card);
    element("span", question, card);
  }
}

function onHello(message) {
  hello = message;
  const task = hello.task;
  $("about").textContent =
    `Task "${task.name}" as ${hello.modality}: ${hello.legend.packet}. A new state every ${task.tick_ms} ms; ` +
    `answer within ${task.horizon_ms} ms. Do nothing when nothing is due.`;
  showLegend();
  $("token").hidden = hello.modality !== "symbols";
  for (let a = 1; a < Math.min(hello.num_symbols, 10); a++) {
    const states = (Array.isArray(task.response) ? task.response : []).flatMap((r, z) => (r === a ? [z] : []));
    addKey(String(a), states.length ? `response ${a} (state ${states.join(", ")})` : `response ${a}`);
  }
  for (let g = 1; g <= Math.min(hello.num_answers, 26); g++) addKey(String.fromCharCode(96 + g), `it was ${g - 1}`);
  $("start").disabled = false;
  $("start").focus();
}

function unpack(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  return [header, buffer.slice(4 + size)];
}

function playSound(payload) {
  // The server may not share a clock with the sound card: chunks are laid end to end, never before now.
  const samples = new Float32Array(payload);
  const chunk = audio.createBuffer(1, samples.length, hello.sample_rate);
  chunk.copyToChannel(samples, 0);
  const source = audio.createBufferSource();
  source.buffer = chunk;
  source.connect(audio.destination);
  playAt = Math.max(audio.currentTime + 0.02, playAt);
  source.start(playAt);
  playAt += chunk.duration;
  drawStrip(Array.from(samples).filter((_, i) => i % 8 === 0));
}

async function showPicture(payload, kind) {
  const bitmap = await createImageBitmap(new Blob([payload], { type: `image/${kind}` }));
  const canvas = $("picture");
  canvas.width = bitmap.width;
  canvas.height = bitmap.height;
  canvas.hidden = false;
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
}

function drawStrip(values) {
  trail.push(...values);
  trail.splice(0, Math.max(0, trail.length - 2000));
  const canvas = $("strip");
  canvas.hidden = false;
  const pen = canvas.getContext("2d");
  const high = Math.max(1e-3, ...trail.map(Math.abs));
  pen.clearRect(0, 0, canvas.width, canvas.height);
  pen.strokeStyle = getComputedStyle(document.body).color;
  pen.beginPath();
  trail.forEach((v, i) => pen.lineTo((i * canvas.width) / 2000, canvas.height / 2 - (0.45 * v * canvas.height) / high));
  pen.stroke();
}

function showToken(value) {
  const states = Array.isArray(hello.task.response) ? hello.task.response.length : Infinity;
  const asks = value >= states;
  $("question").hidden = !asks;
  $("question").textContent = asks ? "What was it then? (keys a, b, c ...)" : "";
  if (!asks) $("token").textContent = String(value);
  $("token").classList.add("fresh");
  setTimeout(() => $("token").classList.remove("fresh"), 150);
}

function onObservation(header, payload) {
  step = header.step;
  receivedAt = performance.now();
  $("clock").textContent = `${(header.time_ms / 1000).toFixed(1)} s of ${(hello.duration_ms / 1000).toFixed(0)} s`;
  if (!header.fresh) return;
  if (header.encoding === "json") header.signal.flat(Infinity).forEach(showToken);
  else if (header.encoding === "pcm_f32le") playSound(payload);
  else if (header.encoding === "f32le") drawStrip(Array.from(new Float32Array(payload)));
  else showPicture(payload, header.encoding);
}

function onBye(message) {
  running = false;
  $("bye").hidden = false;
  const points = message.score ? message.score.points.filter((p) => p.reading === "output-only") : [];
  const say = (x) => (x === null ? "not known" : x.toFixed(3));
  $("bye").textContent = points.length
    ? `Your frontier, ${message.score.unit}:\n` +
      points.map((p) => `within ${p.latency_ms} ms: ${say(p.credited)}, gap ${say(p.gap)}`).join("\n")
    : `Over: ${message.reason}. ${message.why || ""}`;
  document.body.dataset.state = "over";
}

socket.onmessage = (event) => {
  const [header, payload] = typeof event.data === "string" ? [JSON.parse(event.data), null] : unpack(event.data);
  if (header.type === "hello") onHello(header);
  else if (header.type === "observation") onObservation(header, payload);
  else if (header.type === "bye") onBye(header);
  document.body.dataset.step = String(step);
};
socket.onclose = (event) => {
  if (running || !hello) $("about").textContent = `The connection closed (${event.code}${event.reason ? ", " + event.reason : ""}).`;
  running = false;
};

$("start").onclick = () => {
  if (hello.modality === "audio") audio = new AudioContext();
  $("start").disabled = true;
  running = true;
  document.body.dataset.state = "running";
  socket.send(JSON.stringify({ type: "start" }));
};
document.addEventListener("keydown", (event) => {
  if (!event.repeat && !event.ctrlKey && !event.metaKey && running) press(event.key.toLowerCase());
});
