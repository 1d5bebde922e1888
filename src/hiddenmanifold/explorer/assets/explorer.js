// What the page does without the server: sliders, colours, pictures, and the stream of dots.
(function () {
  "use strict";
  const dash = (window.dash_clientside = window.dash_clientside || {});
  const field = (name) => ({ role: "field", name: name });
  const set = (id, props) => dash.set_props(id, props);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let controller = null, describing = null, learning = null, resting = null;

  function chosenTheme() {
    const asked = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    return localStorage.getItem("theme") || asked;
  }

  // black lines are drawn in the colour of the letters, so that they show on dark paper
  const inked = (colour) => (colour === "#000000" ? css("--ink") : colour);

  // a projector is seen from afar
  const afar = () => window.innerWidth > 1700;

  function trace(one) {
    const copy = Object.assign({}, one);
    if (one.line) copy.line = Object.assign({}, one.line, { color: inked(one.line.color) });
    if (one.line && afar()) copy.line.width *= 1.5;
    return copy;
  }

  function axis(given) {
    const ink = css("--ink"), grid = css("--grid");
    const own = { color: ink, gridcolor: grid, linecolor: ink, tickcolor: ink };
    return Object.assign({}, given, own);
  }

  function dotTraces(dots, drawing) {
    if (!dots || dots.setting !== drawing.setting) return [];
    const colours = drawing.data.filter((one) => one.meta && one.meta.curve === 0);
    return drawing.quantities.map((name, k) => {
      const known = dots.points.filter((point) => name in point.values);
      const colour = colours[k] ? inked(colours[k].line.color) : css("--ink");
      return {
        type: "scatter", mode: "markers", name: "simulation", showlegend: k === 0, cliponaxis: false,
        x: known.map((p) => p.x), y: known.map((p) => p.values[name]),
        error_y: { type: "data", visible: true, color: colour,
                   array: known.map((p) => p.values[name + "_stderr"] || 0) },
        marker: { color: css("--paper"), size: 8, line: { color: colour, width: 2 } },
        hovertemplate: "simulation: %{y:.4g}<extra></extra>", meta: { dots: name },
      };
    }).concat(dots.gaps.length ? [{
      type: "scatter", mode: "markers", name: "not simulated", yaxis: "y2",
      x: dots.gaps.map((g) => g.x), y: dots.gaps.map(() => 0.05), text: dots.gaps.map((g) => g.reason),
      marker: { symbol: "x", size: 9, color: css("--ink") }, hovertemplate: "%{text}<extra></extra>",
    }] : []);
  }

  async function read(response, heard) {
    const reader = response.body.getReader(), decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      const lines = rest.split("\n");
      rest = lines.pop();
      lines.filter(Boolean).forEach((line) => heard(JSON.parse(line)));
    }
  }

  function tell(text) { set("told", { children: text }); }

  async function run(query) {
    if (controller) controller.abort();
    const own = (controller = new AbortController());
    const dots = { setting: null, points: [], gaps: [] };
    let total = 1, ended = false;
    tell("starting");
    try {
      const response = await fetch("simulate?" + query, { method: "POST", signal: own.signal });
      if (!response.ok) throw new Error(await response.text());
      await read(response, (event) => {
        if (event.error) { ended = true; tell(event.error); return; }
        if (event.setting !== undefined) {
          dots.setting = event.setting;
          total = event.of;
          set("simulable", { data: event.setting });
        }
        if (event.values) dots.points.push({ x: event.x, values: event.values });
        if (event.reason) dots.gaps.push({ x: event.x, reason: event.reason });
        if (event.values || event.reason) {
          set("dots", { data: { setting: dots.setting, points: dots.points.slice(), gaps: dots.gaps.slice() } });
        }
        if (event.done !== undefined) {
          set("progress", { value: String(event.done), max: String(total) });
          tell(event.done + " of " + total + " points");
        }
        if (event.end) {
          ended = true;
          const gaps = dots.gaps.length ? "; " + dots.gaps[0].reason : "";
          tell("done: " + dots.points.length + " points" + gaps);
        }
      });
      if (!ended) tell("the server stopped answering");
    } catch (error) {
      tell(own.signal.aborted ? "cancelled after " + dots.points.length + " points" : String(error.message || error));
    } finally {
      if (controller === own) controller = null;
    }
  }

  // A slider lives here, in the browser. While it moves, its curve is asked for without a detour,
  // one at a time and always for the last place; the fields learn of it once it rests.
  const SETTLED = 200; // milliseconds
  let current = "", wished = null, asking = false, settling = null;

  function slider(place) {
    let range = place.querySelector("input");
    if (range) return range;
    const { field: name, low, high, label } = place.dataset;
    range = Object.assign(document.createElement("input"), { type: "range", step: 0.01, min: low, max: high });
    range.setAttribute("aria-label", label);
    range.addEventListener("input", () => slid(name, Math.pow(10, Number(range.value))));
    return place.appendChild(range);
  }

  function slid(name, value) {
    const text = String(Number(value.toPrecision(3)));
    document.querySelector('.typed[data-field="' + name + '"] input').value = text;
    const query = new URLSearchParams(current);
    query.delete(name);
    wished = name + "=" + encodeURIComponent(text) + "&" + query;
    hush();
    clearTimeout(settling);
    settling = setTimeout(() => { settling = null; set(field(name), { value: text }); }, SETTLED);
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
        if (drawing.data) await show(drawing);
      }
    } catch (error) { // the fields learn of the place all the same, and tell what is wrong
    } finally { asking = false; }
  }

  function show(drawing) {
    const graph = document.querySelector("#graph .js-plotly-plot");
    const drawn = figure(drawing, null, null);
    return window.Plotly.react(graph, drawn.data, drawn.layout);
  }

  function figure(drawing, references, dots) {
    const known = references && references.address === drawing.address;
    const beside = known ? references : { data: [], shapes: [], annotations: [] };
    const size = afar() ? 21 : 14;
    const layout = Object.assign({}, drawing.layout, {
      meta: drawing.address,
      xaxis: axis(drawing.layout.xaxis),
      yaxis: axis(drawing.layout.yaxis),
      shapes: beside.shapes,
      annotations: beside.annotations.map((one) => Object.assign({}, one, { font: { size: size - 2, color: css("--faint") } })),
      paper_bgcolor: css("--paper"), plot_bgcolor: css("--paper"),
      font: { family: css("--font"), size: size, color: css("--ink") },
    });
    const data = drawing.data.concat(beside.data).map(trace).concat(dotTraces(dots, drawing));
    // what one curve is stands beside its axis
    layout.showlegend = layout.showlegend !== false && data.filter((one) => one.showlegend !== false).length > 1;
    return { data: data, layout: layout };
  }

  // what takes long waits until the sliders rest; whoever moves on ends it
  function rest(address) {
    hush();
    resting = setTimeout(async () => {
      describing = new AbortController();
      try {
        const response = await fetch("describe?" + address, { method: "POST", signal: describing.signal });
        if (response.ok) await read(response, (event) => {
          if (event.data) set("references", { data: event });
          if (event.sentence) set("sentence", { children: event.sentence });
        });
      } catch (error) { // ended by whoever moved on
      }
    }, 300);
  }

  function hush() {
    clearTimeout(resting);
    if (describing) describing.abort();
  }

  // what more samples of a file would bring; a newer question ends the older
  async function learn(name, contents, asked) {
    if (learning) learning.abort();
    const own = (learning = new AbortController());
    const tell = (text) => set("learning-told", { children: text });
    const { most, more } = document.querySelector(".own").dataset;
    if (contents.length * 0.75 > Number(most)) return tell(more);
    tell("reading " + name);
    try {
      const body = await (await fetch(contents)).blob();
      const query = new URLSearchParams({ name: name, ...asked });
      const response = await fetch("learn?" + query, { method: "POST", body: body, signal: own.signal });
      if (!response.ok) throw new Error(await response.text());
      await read(response, (event) => {
        tell(event.error || name);
        if (!event.learning) return;
        set("learned", { hidden: false });
        set("learning", { data: event.learning });
        set("learning-sentence", { children: event.learning.headline });
        set("learning-report", { children: event.learning.report });
        set("learning-python", { children: event.learning.python });
      });
    } catch (error) {
      if (!own.signal.aborted) tell(String(error.message || error));
    }
  }

  dash.explorer = {
    learn: function (_, label, task, gain, positive, name, contents) {
      const asked = { label: label || "", task: task || "", gain: gain || "", positive: positive || "" };
      if (contents) learn(name, contents, asked);
    },
    drawLearning: function (learned) {
      if (!learned) return dash.no_update;
      const { shapes, annotations } = learned;
      return figure(learned, { data: [], shapes: shapes, annotations: annotations }, null);
    },
    draw: function (drawing, references, dots) {
      if (!drawing || settling !== null) return dash.no_update; // a slider has moved on
      return figure(drawing, references, dots);
    },
    saveReport: function (clicks, learned) {
      if (clicks && learned) set("download", { data: { content: learned.page, filename: "report.html", type: "text/html" } });
    },
    openStudy: function (clicks) {
      const panel = document.querySelector(".study");
      if (!clicks) return;
      panel.open = true;
      panel.scrollIntoView({ block: "start" });
      document.querySelector("#study-prevalence").focus({ preventScroll: true });
    },
    saveStudy: function (_, study) {
      const pressed = dash.callback_context.triggered_id;
      if (!pressed || !study) return;
      const types = { html: "text/html", md: "text/markdown" };
      set("download", { data: { content: study.files[pressed.name], filename: "sample_size." + pressed.name, type: types[pressed.name] } });
    },
    remember: function (address) {
      if (address === undefined || address === null) return;
      current = address;
      window.history.replaceState(window.history.state, "", address ? "?" + address : window.location.pathname);
      rest(address);
    },
    follow: function (values, ids) {
      ids.forEach((id, k) => {
        const place = document.querySelector('.slider[data-field="' + id.name + '"]');
        if (!place) return;
        const range = slider(place), number = Number(values[k]);
        if (document.activeElement !== range && number > 0) range.value = Math.log10(number);
      });
    },
    limit: function () {
      const pressed = dash.callback_context.triggered_id;
      if (pressed) set(field("regularisation"), { value: pressed.name });
    },
    theme: function (clicks) {
      let theme = chosenTheme();
      if (clicks) {
        theme = theme === "dark" ? "light" : "dark";
        localStorage.setItem("theme", theme);
      }
      document.documentElement.dataset.theme = theme;
      return theme;
    },
    picture: function () {
      const pressed = dash.callback_context.triggered_id;
      const graph = document.querySelector("#graph .js-plotly-plot");
      if (!pressed || !graph) return;
      const size = { width: 900, height: 560, filename: "view" };
      window.Plotly.downloadImage(graph, Object.assign({ format: pressed.name, scale: pressed.name === "png" ? 2 : 1 }, size));
    },
    simulate: function (clicks, address) {
      if (clicks) run(address || "");
    },
    cancel: function () {
      if (controller) controller.abort();
    },
  };
  document.documentElement.dataset.theme = chosenTheme();
})();
