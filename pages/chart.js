// Lines over the last hour, and where the pointer stands: the time machine.

import { Component } from './vendor/preact.js'
import uPlot from './vendor/uplot.js'
import { html } from './view.js'

/** One line of a label, so that none runs into its neighbour. */
const timeOfDay = (second) => new Date(second * 1000).toLocaleTimeString()

export class Chart extends Component {
  componentDidMount() {
    const style = getComputedStyle(document.documentElement)
    const ink = style.getPropertyValue('--quiet').trim()
    const line = style.getPropertyValue('--line').trim()
    const { series, height = 190, onSecond } = this.props
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line } }
    const tones = { accent: '--accent', good: '--good', warn: '--warn', bad: '--bad' }
    this.plot = new uPlot(
      {
        width: Math.max(240, this.place.clientWidth),
        height,
        cursor: { drag: { x: true, y: false } },
        axes: [
          { ...axis, space: 90, values: (_, ticks) => ticks.map(timeOfDay) },
          { ...axis, size: 48 },
        ],
        series: [
          {},
          ...series.map(({ label, tone }) => ({
            label,
            stroke: style.getPropertyValue(tones[tone]).trim(),
            width: 1.5,
            points: { show: false },
          })),
        ],
        hooks: { setCursor: [(plot) => onSecond?.(plot.cursor.idx)] },
      },
      this.props.data,
      this.place,
    )
    this.observer = new ResizeObserver(() => {
      const width = Math.max(240, this.place.clientWidth)
      if (width !== this.plot.width) this.plot.setSize({ width, height })
    })
    this.observer.observe(this.place)
  }

  componentDidUpdate() {
    this.plot.setData(this.props.data)
  }

  componentWillUnmount() {
    this.observer.disconnect()
    this.plot.destroy()
  }

  render({ title }) {
    return html`<section><h2>${title}</h2><div class="chart" role="img" aria-label=${title} ref=${(element) => (this.place = element)}></div></section>`
  }
}
