// The pages work without this. It keeps what they show current, and spares a click here and there.
"use strict";

const body = document.body;
const state = document.querySelector(".live");
const calm = state ? state.textContent : "";
let source = null;
let last = body.dataset.from || "";

function say(text, good) {
  if (!state) return;
  state.textContent = text;
  state.classList.toggle("off", !good);
}

// A part that a person is writing in is left alone.
function busy(part) {
  if (part.contains(document.activeElement) && document.activeElement !== document.body) return true;
  return [...part.querySelectorAll("textarea")].some((area) => area.value !== area.defaultValue);
}

// The server has escaped everything in it; the page's policy lets nothing run in any case.
function replace(part, html) {
  const open = [...part.querySelectorAll("details")].map((one) => one.open);
  part.innerHTML = html;
  part.querySelectorAll("details").forEach((one, n) => { if (n in open) one.open = open[n]; });
}

function parts(event) {
  last = event.lastEventId || last;
  const drawn = JSON.parse(event.data);
  for (const part of document.querySelectorAll("[data-part]")) {
    const html = drawn[part.dataset.part];
    if (typeof html !== "string" || busy(part)) continue;
    replace(part, html);
  }
  mark();
}

function line(event) {
  last = event.lastEventId || last;
  const rows = document.getElementById("journal");
  if (!rows || !rows.dataset.last) return;
  const holder = document.createElement("tbody");
  holder.innerHTML = event.data;
  const row = holder.firstElementChild;
  if (row && !document.getElementById(row.id)) rows.append(row);
}

function heard(event) {
  const said = JSON.parse(event.data);
  for (const one of document.querySelectorAll(`[data-heard="${Number(said.agent)}"]`)) one.textContent = said.text;
}

// In the inbox, the item that is shown beside the list.
function mark() {
  const shown = body.dataset.shown;
  if (!shown) return;
  for (const item of document.querySelectorAll("a.item[data-run]")) {
    if (item.dataset.run === shown) item.setAttribute("aria-current", "true");
    else item.removeAttribute("aria-current");
  }
}

function open() {
  if (source || !body.dataset.events) return;
  const from = last === "" ? "" : `&from=${encodeURIComponent(last)}`;
  source = new EventSource(`/events?of=${encodeURIComponent(body.dataset.events)}${from}`);
  source.addEventListener("open", () => say(calm, true));
  source.addEventListener("error", () => {
    const gone = source && source.readyState === EventSource.CLOSED;
    say(gone ? "Not connected. Reload the page, or open the address that archeflow ui printed last" : "Not connected; trying again", false);
  });
  source.addEventListener("parts", parts);
  source.addEventListener("line", line);
  source.addEventListener("heard", heard);
  source.addEventListener("reload", () => { if (!busy(document.querySelector("main"))) location.reload(); });
}

function close() {
  if (source) source.close();
  source = null;
}

// A browser opens six connections to a server. A page that nobody sees gives its own back.
document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
addEventListener("pagehide", close);
addEventListener("pageshow", () => { if (!document.hidden) open(); });

// Ctrl+Enter in a form sends it; a form is sent once.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  const form = event.target.closest && event.target.closest("form");
  if (form) form.requestSubmit();
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
  for (const button of form.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
});
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    for (const button of form.querySelectorAll("button")) button.removeAttribute("aria-disabled");
  }
});

// The text field belongs to the choices that have one.
document.addEventListener("change", (event) => {
  if (event.target.name !== "choice") return;
  const text = event.target.form.querySelector("#text");
  if (text && event.target.dataset.text) text.focus();
});

mark();
if (!document.hidden) open();
