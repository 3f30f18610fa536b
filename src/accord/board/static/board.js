// Keys, the filter, and changes from the server. Text of pages comes from the server, where it is escaped.
"use strict";

const MOST_UNFOLDED = 100; // cards that a filter unfolds; more take long to lay out
const FOLDED = "details:not([open])";
const cards = () => [...document.querySelectorAll(".card:not([hidden])")].filter((card) => !card.closest(FOLDED));

const fields = () => [...document.querySelectorAll("input[id]")];

const texts = new WeakMap(); // reading all texts again for each key takes longer than comparing them

function textOf(card) {
  if (!texts.has(card)) texts.set(card, card.textContent.toLowerCase());
  return texts.get(card);
}

function filter() {
  const field = document.getElementById("filter");
  const words = field ? field.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
  for (const card of document.querySelectorAll(".card")) {
    const text = words.length ? textOf(card) : "";
    const isHidden = !words.every((word) => text.includes(word));
    if (card.hidden !== isHidden) card.hidden = isHidden;
  }
  for (const folded of document.querySelectorAll(".more")) {
    const count = folded.querySelectorAll(".card:not([hidden])").length;
    if (words.length && count <= MOST_UNFOLDED) {
      if (!folded.open) folded.dataset.filtered = "";
      folded.open = true;
    } else if ("filtered" in folded.dataset) {
      delete folded.dataset.filtered;
      folded.open = false;
    }
  }
}

document.addEventListener("input", (event) => event.target.id === "filter" && filter());

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, button, summary")) return;
  const tab = document.querySelectorAll("nav a")[Number(event.key) - 1];
  const shown = cards();
  const here = shown.indexOf(document.activeElement);
  if (tab) tab.click();
  else if (event.key === "j" && shown.length) shown[Math.min(here + 1, shown.length - 1)].focus();
  else if (event.key === "k" && shown.length) shown[Math.max(here - 1, 0)].focus();
  else if (event.key === "Enter" && here >= 0 && event.target === shown[here]) shown[here].querySelector("a")?.click();
  else if (event.key === "/") document.getElementById("filter")?.focus();
  else return;
  event.preventDefault();
});

async function update() {
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const typed = new Map(fields().map((field) => [field.id, field.value]));
  const focused = document.activeElement;
  const here = cards().indexOf(document.activeElement);
  const open = [...document.querySelectorAll("details")].map((folded) => folded.open);
  document.title = fresh.title;
  for (const name of ["header", "main", "footer"]) document.querySelector(name).replaceWith(fresh.querySelector(name));
  document.querySelectorAll("details").forEach((folded, i) => (folded.open = open[i] ?? false));
  for (const field of fields()) field.value = typed.get(field.id) ?? field.value;
  filter();
  const field = focused.id && document.getElementById(focused.id);
  if (field?.matches("input")) {
    field.focus();
    field.setSelectionRange(focused.selectionStart, focused.selectionEnd);
  } else if (here >= 0) cards()[here]?.focus();
}

if (document.body.dataset.live) {
  let seen = document.body.dataset.live;
  new EventSource("events").onmessage = (event) => {
    if (event.data !== seen) {
      seen = event.data;
      update();
    }
  };
}
