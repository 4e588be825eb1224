/** Wine 8 knows none of the options of keep-alive, so that a connection that asks for it fails. Windows knows them. */
const { Socket } = require('node:net');

Socket.prototype.setKeepAlive = function setKeepAlive() {
  return this;
};
