// What the page does without the server: sliders, colours, pictures, and the stream of dots.
(function () {
  "use strict";
  const dash = (window.dash_clientside = window.dash_clientside || {});
  const field = (name) => ({ role: "field", name: name });
  const set = (id, props) => dash.set_props(id, props);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const PATIENCE = 20000; // milliseconds after which an answer is no longer waited for
  let controller = null, resting = null, answered = 0;

  function chosenTheme() {
    const asked = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    return localStorage.getItem("theme") || asked;
  }

  // black lines are drawn in the colour of the letters, so that they show on dark paper
  const inked = (colour) => (colour === "#000000" ? css("--ink") : colour);

  function trace(one) {
    const copy = Object.assign({}, one);
    if (one.line) copy.line = Object.assign({}, one.line, { color: inked(one.line.color) });
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
        type: "scatter", mode: "markers", name: "simulation", showlegend: k === 0,
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
      const response = await fetch("simulate?" + query, { signal: own.signal });
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

  // what takes long waits until the sliders rest, and until the last of it was answered
  function rest(address) {
    clearTimeout(resting);
    resting = setTimeout(function ask() {
      if (Date.now() < answered) { resting = setTimeout(ask, 100); return; }
      answered = Date.now() + PATIENCE;
      set("rested", { data: address });
    }, 300);
  }

  dash.explorer = {
    draw: function (drawing, references, dots, theme) {
      if (!drawing) return dash.no_update;
      const known = references && references.address === drawing.address;
      const beside = known ? references : { data: [], shapes: [], annotations: [] };
      const layout = Object.assign({}, drawing.layout, {
        xaxis: axis(drawing.layout.xaxis),
        yaxis: axis(drawing.layout.yaxis),
        shapes: beside.shapes, annotations: beside.annotations,
        paper_bgcolor: css("--paper"), plot_bgcolor: css("--paper"),
        font: { family: css("--font"), size: window.innerWidth > 1700 ? 17 : 14, color: css("--ink") },
      });
      const data = drawing.data.concat(beside.data).map(trace).concat(dotTraces(dots, drawing));
      if (window.explorerDrawn) window.explorerDrawn();
      return { data: data, layout: layout };
    },
    remember: function (address) {
      if (address === undefined || address === null) return;
      const token = new URLSearchParams(window.location.search).get("token");
      const all = [address, token ? "token=" + encodeURIComponent(token) : ""].filter(Boolean).join("&");
      window.history.replaceState(window.history.state, "", all ? "?" + all : window.location.pathname);
      rest(address);
    },
    answered: function () { answered = 0; },
    slide: function () {
      (dash.callback_context.triggered || []).forEach((one) => {
        const name = JSON.parse(one.prop_id.slice(0, one.prop_id.lastIndexOf("."))).name;
        const range = document.querySelector('.slider[data-field="' + name + '"] input');
        // a range that follows what was typed does not type in turn
        if (!range || document.activeElement !== range) return;
        set(field(name), { value: String(Number(Math.pow(10, Number(one.value)).toPrecision(3))) });
      });
    },
    follow: function (values, ids) {
      ids.forEach((id, k) => {
        const range = document.querySelector('.slider[data-field="' + id.name + '"] input');
        const number = Number(values[k]);
        if (!range || document.activeElement === range || !(number > 0)) return;
        const place = Math.round(100 * Math.log10(number)) / 100;
        if (Number(range.value) !== place) set({ role: "slider", name: id.name }, { value: place });
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
