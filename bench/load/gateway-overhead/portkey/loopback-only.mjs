// Portkey listens on all addresses and has no option for it; a benchmark must not open a relay to the network.
import net from 'node:net'

const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (first, ...rest) {
  if (typeof first === 'number' && typeof rest[0] !== 'string')
    return listen.call(this, first, '127.0.0.1', ...rest.slice(-1))
  if (typeof first === 'object' && first?.port !== undefined)
    return listen.call(this, { ...first, host: '127.0.0.1' }, ...rest)
  return listen.call(this, first, ...rest)
}
