/**
 * The only script of the page: a cursor that runs through all plots at once, and the values under it. Everything can
 * be read without it. Browser code, kept as text: it is put into the page as it is.
 *
 * When the keyboard scrolls the page under a resting mouse, the browser reports that the pointer left one plot and
 * moved over another. Neither was the reader's doing: a plot hides only what it showed itself, and a pointer that is
 * where it was on the screen has not moved.
 */
export const PAGE_SCRIPT = `
const data=JSON.parse(document.getElementById('data').textContent)
const canvases=[...document.querySelectorAll('.canvas')]
const count=data.times.length
let at=-1
let shown=null
let pointer=''
function show(source,index){
  shown=source
  at=Math.max(0,Math.min(count-1,index))
  const left=count<2?0:100*at/(count-1)
  for(const canvas of canvases){
    const cursor=canvas.querySelector('.cursor')
    cursor.style.display='block'
    cursor.style.left=left+'%'
    const tip=canvas.querySelector('.tip')
    if(canvas!==source){tip.style.display='none';continue}
    tip.replaceChildren()
    const head=document.createElement('b')
    head.textContent=data.times[at]
    tip.append(head)
    for(const series of data.plots[canvas.dataset.plot]){
      const row=document.createElement('div')
      const key=document.createElement('i')
      key.style.background=series.color
      row.append(key,series.name+' ')
      const value=document.createElement('b')
      value.textContent=series.values[at]
      row.append(value)
      tip.append(row)
    }
    tip.style.display='block'
    const isRight=left>55
    tip.style.left=isRight?'auto':'calc('+left+'% + 10px)'
    tip.style.right=isRight?'calc('+(100-left)+'% + 10px)':'auto'
  }
}
function hide(source){
  if(shown!==source)return
  for(const canvas of canvases)for(const part of canvas.querySelectorAll('.cursor,.tip'))part.style.display='none'
}
for(const canvas of canvases){
  canvas.addEventListener('pointermove',event=>{
    const place=event.screenX+','+event.screenY
    if(place===pointer)return
    pointer=place
    const box=canvas.getBoundingClientRect()
    show(canvas,Math.round((count-1)*(event.clientX-box.left)/box.width))
  })
  canvas.addEventListener('pointerleave',()=>hide(canvas))
  canvas.addEventListener('blur',()=>hide(canvas))
  canvas.addEventListener('keydown',event=>{
    const step={ArrowLeft:-1,ArrowRight:1}[event.key]
    if(step===undefined)return
    event.preventDefault()
    show(canvas,(at<0?0:at)+step)
  })
}
`
