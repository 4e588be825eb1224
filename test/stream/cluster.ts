/** Three nodes of nats-server that keep three replicas of each stream. */
import type { NatsConnection } from '@nats-io/transport-node';
import { freePort } from '../support/ports.js';
import { until } from '../support/serve.js';
import { managerOf, NatsServerProcess } from './nats.js';

const NODES = 3;

export class NatsCluster {
  readonly nodes: readonly NatsServerProcess[];

  private constructor(nodes: readonly NatsServerProcess[]) {
    this.nodes = nodes;
  }

  static async start(maxPayload: number): Promise<NatsCluster> {
    const ports: number[] = [];
    for (let node = 0; node < NODES; node++) ports.push(await freePort());
    const routes = ports.map((port) => `nats://127.0.0.1:${port}`).join(', ');
    const configOf = (port: number, node: number): string =>
      `server_name: "node${node}"\ncluster { name: "test", listen: "127.0.0.1:${port}", routes: [ ${routes} ] }`;
    // A node is healthy only when there is a majority.
    const starts = ports.map((port, node) => NatsServerProcess.start({ maxPayload, config: configOf(port, node) }));
    return new NatsCluster(await Promise.all(starts));
  }

  /** The addresses of all nodes, for `--server`. */
  get url(): string {
    return this.nodes.map(({ url }) => url).join(',');
  }

  /** Kills the node that leads a stream, and starts it again. */
  async killLeaderOf(connection: NatsConnection, stream: string): Promise<void> {
    const { cluster } = await (await managerOf(connection)).streams.info(stream);
    const node = this.nodes[Number(cluster!.leader!.slice('node'.length))]!;
    await node.kill();
    await node.resume();
  }

  /** Waits until all replicas of the streams have what their leaders have: three replicas survive one failure at a time. */
  async isInSync(connection: NatsConnection, streams: string[]): Promise<void> {
    const manager = await managerOf(connection);
    for (const stream of streams) {
      await until(async () => {
        const { cluster } = await manager.streams.info(stream).catch(() => ({ cluster: undefined }));
        const replicas = cluster?.replicas ?? [];
        return replicas.length === NODES - 1 && replicas.every(({ current, lag }) => current && (lag ?? 0) === 0);
      }, `${stream} on all nodes`);
    }
  }

  async remove(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.remove()));
  }
}
