/** The state of the page for an address, without a browser. */
export function given(address) {
  const parameters = new URLSearchParams(address);
  return {
    get: (name) => parameters.get(name) ?? "",
    all: (name) => parameters.getAll(name),
    entries: () => [...parameters],
  };
}
