// Loaded with --import before server-everything, which listens on all
// interfaces and reports the port that it was told, not the one that it got.
import net from 'node:net';

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...args) {
    const callback = args.find(arg => typeof arg === 'function');
    this.once('listening', () => {
        console.error(`listening on http://127.0.0.1:${this.address().port}/mcp`);
    });
    return listen.call(this, { host: '127.0.0.1', port: Number(process.env.INTEROP_PORT || 0) }, callback);
};
