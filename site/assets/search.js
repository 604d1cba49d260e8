// The search box. The index (large) and MiniSearch are loaded when the box is used for the first time.
const root = document.documentElement.dataset.root
const box = document.querySelector('#query')
const hits = document.querySelector('#hits')
let index

function load(file) {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script')
    script.src = root + file
    script.onload = resolve
    script.onerror = () => reject(new Error(`${file} could not be loaded`))
    document.head.append(script)
  })
}

let loading
function ready() {
  loading ??= Promise.all([load('assets/minisearch.js'), load('assets/search-index.js')]).then(() => {
    const options = { fields: ['title', 'page', 'text'], storeFields: ['title', 'page', 'address'] }
    index = window.MiniSearch.loadJSON(window.spillwayIndex, options)
  })
  return loading
}

function show(found) {
  hits.replaceChildren(
    ...found.map(({ title, page, address }) => {
      const link = document.createElement('a')
      link.href = root + address
      link.textContent = title
      const where = document.createElement('small')
      where.textContent = page
      link.append(where)
      const row = document.createElement('li')
      row.append(link)
      return row
    }),
  )
  if (found.length === 0 && box.value.trim() !== '') hits.textContent = 'Nothing was found.'
  hits.hidden = box.value.trim() === ''
}

async function search() {
  await ready()
  const options = { prefix: true, fuzzy: 0.15, boost: { title: 4, page: 2 }, combineWith: 'AND' }
  show(index.search(box.value, options).slice(0, 12))
}

box.addEventListener('focus', () => void ready())
box.addEventListener('input', () => void search())
box.addEventListener('keydown', (event) => {
  if (event.key === 'Enter') hits.querySelector('a')?.click()
  if (event.key === 'Escape') box.value = ''
  if (event.key === 'Escape') show([])
})
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.closest('input, textarea')) return
  event.preventDefault()
  box.focus()
})
if (window.matchMedia('(max-width: 60rem)').matches) document.querySelector('nav > details').open = false
