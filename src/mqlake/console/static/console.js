// The script of all pages: times in the viewer's zone, copy buttons, confirmations, keys, refreshes.
"use strict";

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
const digits = (number) => String(number).padStart(2, "0");

function localText(date) {
  const day = `${date.getFullYear()}-${digits(date.getMonth() + 1)}-${digits(date.getDate())}`;
  return `${day} ${digits(date.getHours())}:${digits(date.getMinutes())}:${digits(date.getSeconds())}`;
}

function showTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const date = new Date(element.getAttribute("datetime"));
    if (!Number.isNaN(date.getTime())) {
      const exact = "exact" in element.dataset && date.getTime() % 1000;
      element.textContent = localText(date) + (exact ? `.${String(exact).padStart(3, "0")}` : "");
      element.title = element.getAttribute("datetime");
    }
  }
}

// Fields for times are in the viewer's zone; a hidden field beside each carries milliseconds.
function linkTimeFields(root) {
  for (const field of root.querySelectorAll("input[type=datetime-local][data-ms]")) {
    const hidden = document.getElementById(field.dataset.ms);
    if (!hidden) continue;
    if (hidden.value && !field.value) {
      const date = new Date(Number(hidden.value));
      if (!Number.isNaN(date.getTime())) field.value = localText(date).replace(" ", "T");
    }
    field.addEventListener("change", () => {
      const time = field.value ? new Date(field.value).getTime() : NaN;
      hidden.value = Number.isNaN(time) ? "" : String(time);
    });
  }
}

// The file of a schema fills the field that is sent: a text as it is, other files in Base64. Its
// name says which format it is.
async function readSchema(field) {
  const file = field.files[0];
  if (!file) return;
  const target = document.getElementById(field.dataset.into);
  if (file.size > 1 << 20) {
    field.setCustomValidity("The file is larger than 1 MiB");
    field.reportValidity();
    return;
  }
  field.setCustomValidity("");
  const bytes = new Uint8Array(await file.arrayBuffer());
  const isText = /\.(avsc|json)$/i.test(file.name);
  target.value = isText
    ? new TextDecoder().decode(bytes)
    : btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  field.form.elements.namedItem("form").value = isText ? "avro" : "protobuf";
}

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Select the text and copy it";
  }
}

function drawPlots(root) {
  if (typeof uPlot === "undefined") return;
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const colours = ["--accent", "--bad", "--warn", "--soft", "--link"].map(colour);
  for (const element of root.querySelectorAll(".plot[data-plot]")) {
    if (element.dataset.drawn === element.dataset.plot) continue;
    element.dataset.drawn = element.dataset.plot;
    element.replaceChildren();
    const plot = JSON.parse(element.dataset.plot);
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line") } };
    new uPlot(
      {
        width: Math.max(200, element.clientWidth),
        height: 220,
        scales: { x: { time: plot.time !== false } },
        axes: [axis, axis],
        series: [{}, ...plot.series.map((one, i) => ({ label: one.label, stroke: colours[i % 5], width: 2 }))],
      },
      plot.values,
      element,
    );
  }
}

function prepare(root) {
  showTimes(root);
  drawPlots(root);
}

document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("zone").textContent = zone;
  prepare(document);
  linkTimeFields(document);
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-copy]");
  if (button) copy(button);
});

document.addEventListener("change", (event) => {
  if (event.target.matches("input[type=file][data-into]")) readSchema(event.target);
});

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

// "/" goes to the filter, "g" and a digit to a section; rows are reached by Tab as links are.
let lastKey = "";
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    const field = document.querySelector("form.filter input:not([type=hidden])");
    if (field) {
      event.preventDefault();
      field.focus();
      field.select();
    }
  }
  if (lastKey === "g" && event.key >= "1" && event.key <= "9") {
    document.querySelectorAll(".top nav a")[Number(event.key) - 1]?.click();
  }
  lastKey = event.key;
});

// Refreshes: not while nobody looks, nor while something in the part is being typed or selected.
document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.detail.elt;
  const selection = window.getSelection();
  const isUsed =
    (part.contains(document.activeElement) && document.activeElement.matches("input, select")) ||
    (selection && !selection.isCollapsed && part.contains(selection.anchorNode));
  if (document.hidden || isUsed) event.preventDefault();
});
let fresh = Date.now();
document.addEventListener("htmx:afterSettle", (event) => prepare(event.target.parentElement || document));
document.addEventListener("htmx:afterRequest", (event) => {
  const stale = document.getElementById("stale");
  if (event.detail.successful) fresh = Date.now();
  else document.getElementById("stale-since").textContent = localText(new Date(fresh));
  stale.hidden = event.detail.successful;
});
