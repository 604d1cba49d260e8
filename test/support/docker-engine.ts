import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT, TestFolder } from './child.ts'
import { trackedFiles } from './copy-of-tree.ts'
import { eventually } from './eventually.ts'
import { RelayedNamespace } from './network-namespaces.ts'

/**
 * A Docker Engine of the test's own, with the project's compose file: its own data, socket and network namespace, so that
 * the machine's network gets no bridge, no address and no rule, and containers reach nothing but each other. Base images
 * and packages come from the folder that `.ci/docker-engine` makes.
 *
 * The engine ends with a pipe that only the test holds, however the test ends, and its containers with it.
 */
const run = promisify(execFile)

/** A busy machine builds images and starts ten containers in minutes. */
const LONG_MS = 15 * 60_000

/** Stops the engine, and with it all containers, when its input ends. */
const KEEPER = 'unshare --net sh -c \'ip link set lo up; exec "$@"\' engine "$@" & cat >/dev/null; kill $!; wait $!'

/** Undefined where the compose file can be run; else why not. */
export function noDockerBecause(): string | undefined {
  const folder = process.env['SPILLWAY_DOCKER_FOLDER']
  if (process.platform !== 'linux') return 'it needs Linux'
  if (process.getuid?.() !== 0) return 'it needs root'
  if (folder === undefined) return 'SPILLWAY_DOCKER_FOLDER is not set: see .ci/docker-engine'
  return existsSync(join(folder, 'node.tar')) ? undefined : `${folder} is not whole: see .ci/docker-engine`
}

export class DockerEngine {
  readonly #brought = process.env['SPILLWAY_DOCKER_FOLDER'] as string
  readonly #folder = new TestFolder()
  readonly #tree = join(this.#folder.path, 'tree')
  readonly #env: Record<string, string>
  #keeper: ChildProcess | undefined
  #namespace: RelayedNamespace | undefined
  #said = ''

  private constructor() {
    const root = join(this.#brought, 'root')
    const libraries = join(root, 'usr', 'lib', 'x86_64-linux-gnu')
    const { PATH = '', HOME = '' } = process.env
    this.#env = {
      PATH: [join(root, 'usr/sbin'), join(root, 'usr/bin'), PATH].join(':'),
      HOME,
      LD_LIBRARY_PATH: libraries,
      XTABLES_LIBDIR: join(libraries, 'xtables'),
      DOCKER_HOST: `unix://${this.#folder.path}/docker.sock`,
      DOCKER_CONFIG: join(this.#brought, 'plugins'),
      SPILLWAY_BUILD_IMAGE: 'test-node',
      SPILLWAY_RUN_IMAGE: 'test-system',
      DEBIAN_IMAGE: 'test-services',
      COMPOSE_FILE: 'compose.yaml:deploy/compose/compose.debian.yaml',
    }
  }

  /** With the base images in it, and a copy of the tree that can be built without a network. */
  static async start(): Promise<DockerEngine> {
    const engine = new DockerEngine()
    try {
      await engine.#start()
    } catch (error) {
      await engine.end()
      throw error
    }
    return engine
  }

  async docker(...words: string[]): Promise<string> {
    const options = { env: this.#env, cwd: this.#tree, maxBuffer: 64 * 1024 * 1024, timeout: LONG_MS }
    try {
      return (await run('docker', words, options)).stdout
    } catch (error) {
      const { stderr = '', stdout = '' } = error as { stderr?: string; stdout?: string }
      throw new Error(`docker ${words.join(' ')}: ${stderr.slice(-3_000)}${stdout.slice(-1_000)}`)
    }
  }

  compose(...words: string[]): Promise<string> {
    return this.docker('compose', ...words)
  }

  /** A published port, as the test outside reaches it. */
  reach(port: number): Promise<string> {
    return (this.#namespace as RelayedNamespace).reach(`http://127.0.0.1:${port}`)
  }

  /** Bytes of an image's layers, each packed as a registry holds it. */
  async packedBytes(image: string): Promise<number> {
    const script = `docker save "$1" | tar -x -C "$2" && find "$2" -name '*.tar' -exec gzip -c {} \\; | wc -c`
    const target = join(this.#folder.path, 'saved', image.replace(/\W/g, '-'))
    mkdirSync(target, { recursive: true })
    const { stdout } = await run('sh', ['-c', script, 'sh', image, target], { env: this.#env, timeout: LONG_MS })
    return Number(stdout)
  }

  async end(): Promise<void> {
    this.#namespace?.end()
    const keeper = this.#keeper
    if (keeper !== undefined && keeper.exitCode === null) {
      const ended = new Promise((resolve) => keeper.once('exit', resolve))
      keeper.stdin?.end()
      await ended
    }
    this.#folder.remove()
  }

  async #start(): Promise<void> {
    for (const path of trackedFiles()) {
      mkdirSync(dirname(join(this.#tree, path)), { recursive: true })
      cpSync(join(ROOT, path), join(this.#tree, path))
    }
    // A promise of a second would test the machine.
    const config = join(this.#tree, 'deploy/compose/spillway.yaml')
    writeFileSync(config, readFileSync(config, 'utf8').replaceAll(/slo: (fast|steady)/g, 'slo: patient'))
    cpSync(join(this.#brought, 'npm-cache'), join(this.#tree, 'deploy/container/npm-cache'), { recursive: true })
    // The cache knows packages by the address that they came from.
    const { stdout } = await run('npm', ['config', 'get', 'registry'])
    this.#env['NPM_CONFIG_REGISTRY'] = stdout.trim()
    await this.#startEngine()
    for (const name of ['system', 'services', 'node']) {
      await this.docker('import', join(this.#brought, `${name}.tar`), `test-${name}`)
    }
  }

  async #startEngine(): Promise<void> {
    const at = (name: string): string => join(this.#folder.path, name)
    const words = [
      'dockerd',
      `--data-root=${at('data')}`,
      `--exec-root=${at('exec')}`,
      `--host=unix://${at('docker.sock')}`,
      `--pidfile=${at('dockerd.pid')}`,
      '--iptables=false',
      '--ip6tables=false',
      '--bip=10.213.8.1/24',
      '--default-address-pool=base=10.213.16.0/20,size=24',
    ]
    const keeper = spawn('sh', ['-c', KEEPER, 'keeper', ...words], {
      env: this.#env,
      stdio: ['pipe', 'ignore', 'pipe'],
      // A group of its own: Ctrl-C is for the test, and the keeper clears up after it.
      detached: true,
    })
    this.#keeper = keeper
    keeper.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#said = (this.#said + text).slice(-4_000)
    })
    await eventually(
      'the Docker Engine answers',
      async () => {
        if (keeper.exitCode !== null) throw new Error(`the Docker Engine ended: ${this.#said}`)
        return existsSync(at('docker.sock')) && (await this.docker('version').then(Boolean, () => false))
      },
      120_000,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${this.#said}`)
    })
    const pid = readFileSync(at('dockerd.pid'), 'utf8').trim()
    this.#namespace = new RelayedNamespace(['nsenter', `--net=/proc/${pid}/ns/net`], '127.0.0.1')
  }
}
