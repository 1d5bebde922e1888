// The controls: native elements for the values that Dash keeps, sliders, help, areas, and time.
(function () {
  "use strict";
  const dash = (window.dash_clientside = window.dash_clientside || {});
  const field = (name) => ({ role: "field", name: name });
  const set = (id, props) => dash.set_props(id, props);
  const find = (selector) => document.querySelector(selector);
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const make = (tag, props) => Object.assign(document.createElement(tag), props);
  const SETTLED = 250; // milliseconds after which a slider is taken to rest
  const WHOLE = 7000; // milliseconds in which training is played

  // ---------------------------------------------------------------- choices

  // a box to tick, radio buttons or a list, whose value Dash keeps beside it
  function choose(place, value) {
    const { field: name, kind, label, options } = place.dataset;
    const own = place.previousElementSibling, id = own.id.startsWith("{") ? field(name) : own.id;
    if (!place.firstChild) {
      const known = JSON.parse(options);
      if (kind === "check") place.append(option("checkbox", "yes", label, name));
      else if (kind === "radio") {
        place.setAttribute("role", "radiogroup");
        place.setAttribute("aria-label", label);
        known.forEach(([value, words]) => place.append(option("radio", value, words, name)));
      } else {
        const list = make("select", { id: "field-" + name.replaceAll(".", "-") });
        known.forEach(([value, words]) => list.append(make("option", { value: value, textContent: words })));
        place.append(list);
      }
      place.addEventListener("change", (event) => {
        const input = event.target;
        set(id, { value: kind === "check" ? (input.checked ? "yes" : "no") : input.value });
      });
    }
    if (kind === "select") place.firstChild.value = value;
    else place.querySelectorAll("input").forEach((one) => { one.checked = one.value === value; });
  }

  // which rows matter to the view, and what is wrong in them
  function mark(marks) {
    all(".row").forEach((row) => {
      const wrong = marks.errors[row.dataset.field];
      row.hidden = !marks.matters.includes(row.dataset.field);
      row.querySelector(".error").textContent = wrong ? "must be " + wrong : "";
    });
    all(".more").forEach((folded) => { folded.hidden = !folded.querySelector(".row:not([hidden])"); });
    delete document.body.dataset.pending;
  }

  function option(type, value, words, name) {
    const label = make("label", {});
    label.append(make("input", { type: type, value: value, name: name }), make("span", { textContent: words }));
    return label;
  }

  function follow(values, ids) {
    document.body.dataset.pending = "";
    const texts = Object.fromEntries(ids.map((id, k) => [id.name, values[k]]));
    all(".choice").forEach((place) => {
      const own = place.previousElementSibling;
      choose(place, own.id.startsWith("{") ? texts[place.dataset.field] : own.getAttribute("value") || "");
    });
    const tabs = find(".tabs"), chosen = find(".tabs input:checked");
    if (chosen) tabs.scrollLeft = chosen.parentElement.offsetLeft - tabs.offsetLeft - 60;
    all(".slider").forEach((place) => {
      const range = slider(place), number = Number(texts[place.dataset.field]);
      if (document.activeElement === range) return;
      if (number > 0) range.value = Math.log10(number);
      else if (/^0/.test(texts[place.dataset.field])) range.value = range.min; // the limit λ → 0⁺
    });
    all(".more .typed").forEach((place) => { // what is not as usual is in sight
      const { field: name, default: usual } = place.dataset;
      if (texts[name] !== usual && name.startsWith(name.split(".")[0] + "." + texts[name.split(".")[0]] + ".")) place.closest("details").open = true;
    });
  }

  // ---------------------------------------------------------------- sliders

  // A slider lives here, in the browser. While it moves, its curve is asked for without a detour,
  // one at a time and always for the last place; the fields learn of it once it rests.
  let wished = null, asking = false, settling = null, playing = null, frames = null;

  function slider(place) {
    let range = place.querySelector("input");
    if (range) return range;
    const { field: name, low, high, label } = place.dataset;
    range = make("input", { type: "range", step: 0.01, min: low, max: high });
    range.setAttribute("aria-label", label);
    range.addEventListener("input", () => {
      stop();
      slid(name, Math.pow(10, Number(range.value)));
    });
    place.appendChild(range);
    return range;
  }

  function slid(name, value) {
    const text = String(Number(value.toPrecision(3)));
    find('.typed[data-field="' + name + '"] input').value = text;
    clearTimeout(settling);
    settling = setTimeout(() => { settling = null; set(field(name), { value: text }); }, SETTLED);
    if (name === "time") return frame(Math.log10(value)); // all times are here
    const query = new URLSearchParams(dash.explorer.address());
    query.delete(name);
    wished = name + "=" + encodeURIComponent(text) + "&" + query;
    dash.explorer.hush();
    if (!asking) ask();
  }

  async function ask() {
    asking = true;
    try {
      while (wished !== null) {
        const query = wished;
        wished = null;
        const response = await fetch("curve?" + query, { method: "POST" });
        const drawing = response.ok ? await response.json() : {};
        if (drawing.data) await dash.explorer.show(drawing);
      }
    } catch (error) { // the fields learn of the place all the same, and tell what is wrong
    } finally { asking = false; }
  }

  // ---------------------------------------------------------------- training time

  function frame(time) {
    const graph = find("#graph .js-plotly-plot");
    if (!frames || !graph) return;
    const { times, y } = frames, last = times.length - 1;
    let k = times.findIndex((one) => one > time) - 1;
    k = k < 0 ? (time < times[0] ? 0 : last - 1) : k;
    const part = Math.min(1, Math.max(0, (time - times[k]) / (times[k + 1] - times[k])));
    const now = y[k].map((value, i) => (value === null || y[k + 1][i] === null ? null : value + part * (y[k + 1][i] - value)));
    const name = "at t = " + Number(Math.pow(10, time).toPrecision(3));
    window.Plotly.restyle(graph, { y: [now], name: [name] }, [0]);
  }

  function play() {
    if (playing) return stop();
    const range = find('.slider[data-field="time"] input'), typed = find('.typed[data-field="time"] input');
    const low = Number(range.min), high = Number(range.max);
    const from = Number(range.value) < high - 0.02 ? Number(range.value) : low;
    const begun = performance.now();
    find("#play").textContent = "❚❚ Pause";
    const step = (now) => {
      const time = Math.min(high, from + ((high - low) * (now - begun)) / WHOLE);
      range.value = time;
      typed.value = String(Number(Math.pow(10, time).toPrecision(3)));
      frame(time);
      if (time < high) playing = requestAnimationFrame(step);
      else stop();
    };
    playing = requestAnimationFrame(step);
  }

  function stop() {
    if (!playing) return;
    cancelAnimationFrame(playing);
    playing = null;
    find("#play").textContent = "▶ Play";
    set(field("time"), { value: find('.typed[data-field="time"] input').value });
  }

  // ---------------------------------------------------------------- help, areas, copies

  function help(button) {
    let told = find("#help");
    if (!told) {
      told = make("div", { id: "help", popover: "auto" });
      told.setAttribute("role", "note");
      find("main").append(told);
    }
    told.textContent = button.dataset.about;
    told.showPopover();
    const at = button.getBoundingClientRect();
    told.style.left = Math.max(8, Math.min(at.left, window.innerWidth - told.offsetWidth - 8)) + "px";
    const below = at.bottom + 6, above = at.top - told.offsetHeight - 6;
    told.style.top = (below + told.offsetHeight > window.innerHeight && above > 0 ? above : below) + "px";
  }

  function area() {
    const asked = window.location.hash.slice(1);
    const shown = ["study", "data"].includes(asked) ? asked : "explore";
    document.body.dataset.area = shown;
    const plan = find("#plan-study");
    if (shown === "study" && plan && find("#studied").hidden) plan.click(); // an example to begin with
    all(".area-link").forEach((link) => {
      if (link.dataset.area === shown) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button, .area-link"), menu = find(".menu[open]");
    if (menu && !menu.contains(event.target)) menu.open = false;
    if (!button) return;
    if (button.matches(".help")) help(button);
    if (button.matches(".copy")) navigator.clipboard.writeText(find("#" + button.dataset.copy).textContent);
    if (button.id === "play") play();
  });
  document.addEventListener("keydown", (event) => {
    const menu = find(".menu[open]");
    if (event.key !== "Escape" || !menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  window.addEventListener("hashchange", area);

  dash.controls = {
    follow: function (values, ids) { area(); follow(values, ids); },
    mark: function (marks) { if (marks) mark(marks); },
    limit: function () {
      const pressed = dash.callback_context.triggered_id;
      if (pressed) set(field("regularisation"), { value: pressed.name });
    },
    moving: () => settling !== null || playing !== null,
    drawn: function (drawing) {
      frames = drawing.frames || null;
      const hold = find('.choice[data-field="hold"]');
      if (hold) hold.querySelectorAll("label").forEach((label) => {
        label.hidden = !(drawing.holds || []).includes(label.firstChild.value);
      });
    },
  };
})();
