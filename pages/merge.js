// A second's message put into what is known: members that are there replace, `…At` replace single places.
export function merged(view, delta) {
  const next = { ...view }
  for (const [name, value] of Object.entries(delta)) {
    if (!name.endsWith('At') || view === undefined) {
      next[name] = value
      continue
    }
    const list = name.slice(0, -2)
    next[list] = [...view[list]]
    for (const [place, item] of value) next[list][place] = item
  }
  return next
}
