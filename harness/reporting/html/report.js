"use strict";
(() => {
  const ROW = 52, SPARE = 8, MOST_BLOCKS = 24, LEAST_LETTERS = 3;
  const found = (selector, from = document) => from.querySelector(selector);

  /* Every text becomes a text node: nothing that a model wrote is ever read as HTML. */
  function make(name, attributes = {}, ...inside) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (value === true) node.setAttribute(key, "");
      else if (value !== false && value != null) node.setAttribute(key, value);
    }
    node.append(...inside.filter((one) => one != null).map((one) => one.nodeType ? one : String(one)));
    return node;
  }

  function sortBy(head) {
    const table = head.closest("table"), body = table.tBodies[0];
    const column = [...head.parentNode.children].indexOf(head);
    const up = head.getAttribute("aria-sort") === "descending";
    const key = (row) => row.cells[column]?.dataset.sort;
    const number = [...body.rows].some((row) => key(row) != null);
    const sign = up ? 1 : -1;
    const place = (row) => number ? (key(row) == null ? null : Number(key(row))) : row.cells[column].textContent;
    const rows = [];
    for (const row of body.rows) row.classList.contains("follows") ? rows.at(-1)[1].push(row) : rows.push([place(row), [row]]);
    rows.sort(([one], [other]) => {
      if (one === null || other === null) return (one === null) - (other === null);
      return sign * (number ? one - other : one.localeCompare(other));
    });
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    body.append(...rows.flatMap(([, together]) => together));
  }
  for (const button of document.querySelectorAll("table.sortable thead button")) {
    button.addEventListener("click", () => sortBy(button.parentNode));
  }
  for (const button of document.querySelectorAll("button.fold")) {
    const fold = (open) => {
      button.setAttribute("aria-expanded", open);
      for (const row of document.getElementsByClassName(button.value)) row.hidden = !open;
    };
    button.addEventListener("click", () => fold(button.getAttribute("aria-expanded") !== "true"));
    fold(false);
  }

  async function unpack(id) {
    const packed = atob(document.getElementById(id).textContent), bytes = new Uint8Array(packed.length);
    for (let at = 0; at < packed.length; at++) bytes[at] = packed.charCodeAt(at);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  }
  const blocks = new Map();
  let shared = null;
  function block(number) {
    let one = blocks.get(number);
    blocks.delete(number);
    blocks.set(number, one ??= unpack(`block-${number}`));
    if (blocks.size > MOST_BLOCKS) blocks.delete(blocks.keys().next().value);
    return one;
  }

  const viewer = found("#viewer");
  if (!viewer || !found("#index")) return;
  let index, shown = [], chosen = null, search = 0, opened = 0;
  const said = make("p", { role: "status", class: "note" }, "Unpacking …");
  const list = make("ul", { role: "listbox", tabindex: 0, "aria-label": "samples" });
  const frame = make("div", { class: "list" }, list);
  const detail = make("div", { class: "detail", tabindex: 0, role: "region", "aria-label": "the chosen sample" },
    make("p", { class: "note" }, "Choose a sample to see all that was asked and answered."));
  const controls = {};

  function field(name, label, node) {
    controls[name] = node;
    node.addEventListener("input", filter);
    return make("label", {}, label, node);
  }
  function choice(name, label, values, any = "all") {
    const options = values.map((value, place) => make("option", { value: place }, value));
    const more = name === "failure" && values.length ? [make("option", { value: "any" }, "any failure")] : [];
    return field(name, label, make("select", {}, make("option", { value: "" }, any), ...more, ...options));
  }
  const text = (name, label, type) => field(name, label, make("input", { type, step: type === "number" ? "any" : null }));

  async function start() {
    index = await unpack("index");
    const apart = index.runs.length > 1 ? ["largest difference between models"] : [];
    viewer.replaceChildren(
      make("form", { class: "filters", onsubmit: (event) => event.preventDefault() },
        text("words", "search", "search"), choice("run", "model", index.runs), choice("task", "task", index.tasks),
        choice("failure", "failure", index.failure), choice("slice", "slice", index.slice),
        text("user", "user", "text"), text("low", "score from", "number"), text("high", "score to", "number"),
        choice("order", "order", ["lowest score", "highest score", ...apart], "as kept")),
      said, make("div", { class: "panes" }, frame, detail));
    frame.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
    list.addEventListener("keydown", step);
    new ResizeObserver(() => requestAnimationFrame(draw)).observe(frame);
    filter();
    viewer.dataset.ready = index.id.length;
    window.addEventListener("hashchange", follow);
    follow();
  }

  function filter() {
    const value = (name) => controls[name].value;
    const words = value("words").toLowerCase(), user = value("user").toLowerCase();
    const has = (list, wanted) => wanted === "" || (wanted === "any" ? list.length > 0 : list.includes(Number(wanted)));
    const fits = (at) =>
      (value("run") === "" || index.run[at] === Number(value("run"))) &&
      (value("task") === "" || index.task[at] === Number(value("task"))) &&
      has(index.failures[at], value("failure")) && has(index.slices[at], value("slice")) &&
      (!user || index.user[at].toLowerCase().includes(user)) &&
      (value("low") === "" || (index.score[at] !== null && index.score[at] >= Number(value("low")))) &&
      (value("high") === "" || (index.score[at] !== null && index.score[at] <= Number(value("high"))));
    const names = (at) => [index.id[at], index.user[at], index.opening[at], ...index.failures[at].map((one) => index.failure[one])];
    const all = [...index.id.keys()].filter(fits);
    const number = ++search;
    shown = words ? all.filter((at) => names(at).some((one) => one.toLowerCase().includes(words))) : all;
    sorted();
    frame.scrollTop = 0;
    told();
    draw();
    if (words.length >= LEAST_LETTERS) searchTexts(words, all, number);
  }
  function sorted() {
    const order = controls.order.value;
    if (order === "") return shown.sort((one, other) => one - other);
    const sign = order === "0" ? 1 : -1, last = sign * Infinity;
    const values = order === "2" ? differences() : index.score;
    const value = (at) => values[at] ?? last;
    shown.sort((one, other) => sign * (value(one) - value(other)) || one - other);
  }
  /* By sample how far apart the scores of its unit are in all runs. */
  function differences() {
    const units = new Map(), unit = (at) => `${index.task[at]} ${index.id[at]}`;
    index.score.forEach((score, at) => {
      if (score !== null) units.set(unit(at), [...units.get(unit(at)) ?? [], score]);
    });
    const apart = (scores) => scores && Math.max(...scores) - Math.min(...scores);
    return index.id.map((_, at) => apart(units.get(unit(at))));
  }
  const told = (more = "") => {
    said.textContent = `${shown.length.toLocaleString("en")} of ${index.id.length.toLocaleString("en")} samples${more}`;
  };

  async function searchTexts(words, all, number) {
    const known = new Set(shown), rest = new Map();
    for (const at of all) if (!known.has(at)) (rest.get(index.block[at]) ?? rest.set(index.block[at], []).get(index.block[at])).push(at);
    shared ??= await unpack("shared");
    const holding = (texts) => new Set([...texts.keys()].filter((at) => texts[at].toLowerCase().includes(words)));
    const inShared = holding(shared);
    let done = 0;
    for (const [place, places] of rest) {
      const one = await unpack(`block-${place}`);
      if (number !== search) return;
      const hits = holding(one.texts);
      const holds = (value) => typeof value === "string" ? value.toLowerCase().includes(words)
        : typeof value === "number" ? (value < 0 ? inShared.has(-1 - value) : hits.has(value))
          : value !== null && typeof value === "object" && Object.values(value).some(holds);
      shown.push(...places.filter((at) => one.samples[index.place[at]].records.some(holds)));
      told(`; searching the texts: ${++done} of ${rest.size}`);
      if (done % 8 === 0) draw();
    }
    sorted();
    told();
    draw();
  }

  function draw() {
    list.style.height = `${shown.length * ROW}px`;
    const first = Math.max(Math.floor(frame.scrollTop / ROW) - SPARE, 0);
    const last = Math.min(first + Math.ceil(frame.clientHeight / ROW) + 2 * SPARE, shown.length);
    const rows = [];
    for (let place = first; place < last; place++) rows.push(row(place));
    list.replaceChildren(...rows);
    const place = shown.indexOf(chosen);
    if (place < 0) list.removeAttribute("aria-activedescendant");
    else list.setAttribute("aria-activedescendant", `row-${place}`);
  }
  function row(place) {
    const at = shown[place], lost = index.failures[at].map((one) => index.failure[one]).join(", ");
    const score = index.score[at] === null ? "–" : `${index.metrics[index.task[at]]} ${Number(index.score[at].toFixed(3))}`;
    const node = make("li", {
      role: "option", id: `row-${place}`, "aria-selected": String(at === chosen), "aria-setsize": shown.length,
      "aria-posinset": place + 1, class: lost ? "lost" : null, onclick: async () => {
        await choose(at);
        showDetail();
      },
    }, make("strong", {}, index.id[at]), make("span", {}, score),
    make("small", {}, `${index.runs[index.run[at]]}, ${index.tasks[index.task[at]]}${lost ? `: ${lost}` : ""}`),
    make("small", {}, index.opening[at]));
    node.style.top = `${place * ROW}px`;
    return node;
  }
  function step(event) {
    const page = Math.floor(frame.clientHeight / ROW);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (!(event.key in moves) || !shown.length) return;
    event.preventDefault();
    choose(shown[Math.min(Math.max(shown.indexOf(chosen) + moves[event.key], 0), shown.length - 1)]);
  }
  async function choose(at) {
    chosen = at;
    const place = shown.indexOf(at);
    if (place >= 0 && place * ROW < frame.scrollTop) frame.scrollTop = place * ROW;
    if ((place + 1) * ROW > frame.scrollTop + frame.clientHeight) frame.scrollTop = (place + 1) * ROW - frame.clientHeight;
    draw();
    history.replaceState(null, "", address(at));
    await open(at);
  }
  /* Below the list, as on a phone, the sample is brought into view. */
  const showDetail = () => { if (detail.offsetTop > frame.offsetTop) detail.scrollIntoView(); };
  const address = (at) => `#sample/${[index.runs[index.run[at]], index.tasks[index.task[at]], index.id[at]].map(encodeURIComponent).join("/")}`;
  /* Choose the sample that the address of the page names. */
  async function follow() {
    if (!location.hash.startsWith("#sample/")) return;
    const at = index.id.findIndex((_, each) => address(each) === location.hash);
    viewer.scrollIntoView();
    if (at < 0) return told("; the sample of the address is not on this page");
    await choose(at);
    showDetail();
  }
  async function open(at) {
    const number = ++opened;
    shared ??= await unpack("shared");
    const one = await block(index.block[at]), sample = one.samples[index.place[at]];
    if (number !== opened) return;
    const read = (value) => typeof value === "number" ? (value < 0 ? shared[-1 - value] : one.texts[value]) : value;
    const others = [...index.id.keys()].filter((each) =>
      each !== at && index.id[each] === index.id[at] && index.task[each] === index.task[at]);
    const scores = [
      ...Object.entries(sample.values).map(([name, value]) => [name, Number(value.toFixed(4))]),
      ...sample.missing.map(([name, cause]) => [name, `missing: ${read(cause)}`])];
    detail.replaceChildren(
      make("h3", {}, index.id[at]),
      make("p", { class: "note" }, `${index.runs[index.run[at]]} on ${index.tasks[index.task[at]]}; user ${index.user[at]}`,
        ...index.slices[at].map((each) => `; ${index.slice[each]}`)),
      others.length ? make("p", {}, "The same by: ", ...others.flatMap((each) => [
        make("button", { type: "button", onclick: () => choose(each) }, index.runs[index.run[each]]), " "])) : "",
      make("ul", { class: "scores", "aria-label": "scores" }, ...scores.map(([name, value]) =>
        make("li", {}, `${name} `, make("strong", {}, value)))),
      ...sample.records.map((record) => recordOf(record, read)));
    detail.scrollTop = 0;
  }
  const part = (title, value, kind) => value == null ? null : make("div", { class: kind }, make("h5", {}, title), make("pre", {}, value));
  function recordOf(record, read) {
    const body = make("div", {});
    if (record.item != null) body.append(make("details", {}, make("summary", {}, "item"), make("pre", {}, read(record.item))));
    for (const call of record.calls ?? []) {
      body.append(make("h4", {}, read(call.about)),
        ...call.messages.map(([role, value]) => part(role, read(value), "prompt")),
        ...[["reasoning", "thought"], ["text", "answer"], ["failure", "failed"]].filter(([name]) => name in call)
          .map(([name, kind]) => part(name === "text" ? "answer" : name, read(call[name]), kind)));
    }
    if ("value" in record) body.append(part("what was read", read(record.value), "value"));
    if ("failure" in record) body.append(part("failed", read(record.failure), "failed"));
    for (const judged of record.judged ?? []) {
      body.append(part(`verdict of ${read(judged.about)}`, read(judged.verdict), "verdict"),
        ...(judged.votes ?? []).map(([member, value]) => part(`vote of ${read(member)}`, read(value), "verdict")));
    }
    return make("details", { open: true }, make("summary", {}, `${record.stage} / ${read(record.id)}`), body);
  }

  const started = start();
  for (const link of document.querySelectorAll("[data-show=failures]")) {
    link.addEventListener("click", () => started.then(() => { controls.failure.value = "any"; filter(); }, () => {}));
  }
  started.catch((error) => { viewer.replaceChildren(make("p", {}, `The samples cannot be shown here: ${error}`)); });
})();
