// Elements are built and their text is set: nothing that was typed or uploaded is ever read as HTML.

export const byId = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "data") Object.assign(node.dataset, value);
    else if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// Text is only written where it differs, so that a live region does not read out the same thing again.
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// The children of `parent`, one for each item. Those that stay are kept: focus, half-typed names and loaded pictures too.
export function keyed(parent, items, keyOf, build, update = () => {}) {
  const old = new Map([...parent.children].map((node) => [node.dataset.id, node]));
  const kept = items.map((item) => {
    const key = keyOf(item);
    const node = old.get(key) ?? build(item);
    old.delete(key);
    node.dataset.id = key;
    update(node, item);
    return node;
  });
  for (const node of old.values()) node.remove();
  kept.forEach((node, place) => {
    if (parent.children[place] !== node) parent.insertBefore(node, parent.children[place] ?? null);
  });
}

export const percent = (share) => {
  const value = share * 100;
  return `${value >= 9.95 || value < 0.05 ? value.toFixed(0) : value.toFixed(1).replace(/\.0$/, "")} %`;
};
